import type { PlaywrightTestArgs, PlaywrightWorkerArgs, PlaywrightTestOptions, PlaywrightWorkerOptions, TestType } from "@playwright/test";

export { expect } from "@playwright/test";

type Side = { rate?: string; delay?: string; loss?: number | object };
export type Conditions = { down?: Side; up?: Side };

export class Link {
  constructor(options?: { url?: string; token?: string });
  conditions(): Promise<any>;
  set(conditions: Conditions): Promise<any>;
  outage(time: string, options?: { direction?: "up" | "down" | "both"; drop?: boolean }): Promise<any>;
  fault(fault: string, options?: { only?: string[]; for?: string }): Promise<any>;
  mend(): Promise<any>;
  results(): Promise<any>;
}

export const test: TestType<
  PlaywrightTestArgs & PlaywrightTestOptions & { link: Link },
  PlaywrightWorkerArgs & PlaywrightWorkerOptions
>;
