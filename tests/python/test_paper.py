"""Documents: rows, claims, verdicts, claim table. `pytest -m whole` reruns every document."""

import json
import math
import re
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ackclock.paper import (
    Claim,
    Counts,
    InDocument,
    JudgedRow,
    Missing,
    NullModel,
    Outcome,
    Paper,
    Runs,
    Verdict,
    claims_page,
    judge_row,
    keys,
    load,
    measure,
    output,
    point,
    radio,
    simulate,
)
from ackclock.paper import expected as expected_file
from ackclock.paper.document import formula, number
from ackclock.paper.expected import Expected, Row
from ackclock.papers.ac06 import grid as ac06_grid
from ackclock.papers.cr02 import claims, figures, grid
from ackclock.papers.cr04 import grid as cr04_grid
from ackclock.papers.l02 import grid as l02_grid
from conftest import run_object, web_object

CR02 = load("cr02")
ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "papers"
PROFILES = ROOT / "crates" / "ackclock-cli" / "profiles"


def row(tolerance: str = "+-3%", value: str = "100", kind: str = "sim", name: str = "X-1") -> Row:
    return Row(name, "X", "any", "goodput", value, "Kb/s", tolerance, kind, "")


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    objects = {at: [run_object(150e3 + 500 * seed, seed=seed) for seed in range(5)] for at in grid.points()}
    runs = Runs(objects)
    return Outcome(CR02, runs, CR02.judge(CR02.claims(runs, CR02.expected)))


def misses(outcome: list[JudgedRow]) -> set[str]:
    return {judged.row.id for judged in outcome if judged.verdict is Verdict.NOT_REPRODUCED}


def by_order_alone(outcome: Outcome) -> set[str]:
    """Simulated rows with a number of which the order alone holds, although their tolerance allows more than an order.

    The share of an effect says by how much.
    """
    held = [judged for judged in outcome.rows if judged.verdict is Verdict.ORDERING_HOLDS and judged.kind == "sim"]
    numbers = [judged for judged in held if re.search(r"\d", judged.row.value) and not judged.shares]
    return {judged.row.id for judged in numbers if judged.row.tolerance not in ("qualitative", "ordering")}


def test_tables_1_and_3_come_out_of_the_simulator():
    # The code and the runs of the claim table, without the curves of the figures.
    runs = simulate([*grid.TABLE1.values(), *grid.TABLE3.values()])
    claimed = dict([*claims.table_1(runs), *claims.table_2(runs, CR02.expected), *claims.table_3(runs)])
    judged = [judge_row(CR02.expected[name], claim) for name, claim in claimed.items()]
    assert len(judged) == 9 * 10 + 9 * 7 + 4 * 7
    assert misses(judged) <= CR02.tried.keys()


def test_the_regulator_pays_where_the_delay_varies():
    # One point of figures 11(b) and 13 each, for a sixth of their time: who wins, not by how much.
    short = {v: [_short(grid.FIG11B[v][4]), _short(grid.FIG13[v][6])] for v in grid.VARIANTS}
    runs = simulate([at for ats in short.values() for at in ats], seeds=2)
    for i in range(2):
        kbps = {v: runs(ats[i], measure.goodput).mean() for v, ats in short.items()}
        assert kbps["Reno"] < kbps["Sack"] < min(kbps["Reno+AR"], kbps["Sack+AR"])


def _short(at: str, seconds: int = 600) -> str:
    return re.sub('^duration = ".*"', f'duration = "{seconds}s"', at, flags=re.MULTILINE)


def test_the_regulators_stand_in_their_order_on_the_cell():
    # CR04 figure 7 at B 5 and figure 9 at 200 ms one way, two seeds.
    channel = cr04_grid.Channel(doppler=10, snr=2.3)
    buffers, delays = channel.by_buffer(), channel.by_delay()
    at = {name: (_short(buffers[name][5], 200), _short(delays[name][200], 200)) for name in cr04_grid.REGULATORS}
    runs = simulate([point for pair in at.values() for point in pair], seeds=2)
    near, far = ({name: runs(pair[i], measure.goodput).mean() for name, pair in at.items()} for i in (0, 1))
    assert near["WRS"] < near["DT"] < near["AR"] < near["WRD"] < near["WRB"]
    assert max(far["WRS"], far["WRD"], far["WRB"]) < far["DT"]
    assert all(runs(at[name][0], measure.drops).max() == 0 for name in ("WRS", "WRD", "WRB"))


def test_the_scenario_files_of_the_cell_are_points_that_are_judged():
    # So whoever runs one of them has the cell of the claim tables.
    long_flows, short_flows = (cr04_grid.SCENARIOS / f"{name}-flows.toml" for name in ("long", "short"))
    assert point(long_flows, {}) == cr04_grid.JUDGED.by_buffer()["DT"][20]
    assert point(short_flows, {}) == cr04_grid.JUDGED.by_scheme("different")["PF/FIFO"]
    assert point(grid.SCENARIOS / "hdr.toml", {}) == grid.fig14()["Reno"][10]


def test_the_preset_cr04_is_the_cell_that_is_judged():
    judged = _short(cr04_grid.JUDGED.by_buffer()["DT"][20], 30)
    preset = 'preset = "cr04"\nduration = "30s"\n'
    runs = simulate([judged, preset], seeds=1)
    flows = [runs.objects[at][0]["flows"] for at in (judged, preset)]
    assert flows[0] == flows[1]


def test_the_preset_ac06_is_the_conventional_case_that_is_judged():
    judged = ac06_grid.download(1, duration="30s")
    preset = 'preset = "ac06"\nduration = "30s"\nmeasure = ["transit"]\n'
    runs = simulate([judged, preset], seeds=1)
    flows = [runs.objects[at][0]["flows"] for at in (judged, preset)]
    assert flows[0] == flows[1]


def test_the_preset_l02_is_the_first_row_of_table_3():
    judged = replace(l02_grid.LARGE_FILES["L02-T3-1"], keys={"duration": "30s"}).point()
    preset = 'preset = "l02"\nduration = "30s"\nflow = [{ workload = { kind = "file", size = "14888889B" } }]\n'
    runs = simulate([judged, preset], seeds=1)
    flows = [runs.objects[at][0]["flows"] for at in (judged, preset)]
    assert flows[0] == flows[1]


def test_captions_and_tables_tell_the_cell_that_is_simulated():
    assert grid.channel(1) == "Doppler 11 Hz, mean SNR 2.3 dB"
    assert grid.channel(8) == "Doppler 11 Hz, mean SNR -0.7 dB"
    assert grid.places() == cr04_grid.places() == "slots of one packet, one place beyond each buffer"
    assert cr04_grid.Channel(doppler=30, snr=0).told() == "Doppler 30 Hz, mean SNR 0 dB"
    mixed = cr04_grid.JUDGED.by_scheme("different")["PF/FIFO"]
    assert radio.channel(mixed) == "Doppler 11 Hz, mean SNR 4 and -4 dB"
    other = cr04_grid.Channel(remainder="next").by_buffer()["DT"][20]
    assert radio.places(other, 0) == "packets share slots, no place beyond each buffer"
    runs = Runs({at: [run_object()] for at in grid.points()})
    captions = [figure.caption for figure in figures.cell_figures(runs)]
    assert all(grid.places() in caption for caption in captions)
    assert [grid.channel(users) in caption for users, caption in zip((1, 1, 4, 8), captions, strict=True)] == [True] * 4


def test_traffic_is_judged_as_the_sentence_says_it():
    # User 1 has pages and nothing else, users 2 to 4 have files, each from a time that the seed draws.
    table = tomllib.loads(cr04_grid.JUDGED.by_scheme("different")["PF/FIFO"])
    assert [user["count"] for user in table["edge"]["user"]] == [1, 1, 2]
    assert [user["mean_snr"] for user in table["edge"]["user"]] == [4.0, 4.0, -4.0]
    assert [(flow["user"], flow["count"]) for flow in table["flow"]] == [(0, 1), (1, 1), (2, 2)]
    assert table["flow"][0]["workload"] == "web"
    assert table["flow"][1]["workload"] == table["flow"][2]["workload"] == {"kind": "ftp", "first": "u(100s, 57.735s)"}
    # Four times as many users are four times as many of each kind.
    sixteen = tomllib.loads(cr04_grid.JUDGED.by_users("same")[16]["PF/FIFO"])
    assert (
        [user["count"] for user in sixteen["edge"]["user"]] == [flow["count"] for flow in sixteen["flow"]] == [4, 4, 8]
    )


def test_every_simulated_row_of_cr04_has_a_claim_at_every_doppler_frequency():
    # Numbers do not matter here: every point has the same web and bulk run.
    made = run_object(700e3)
    made["flows"][0]["timeouts"] = 0
    made |= {"transfers": web_object()["transfers"], "fairness": {"jain_users": 0.99}}
    runs = Runs({at: [made] * 2 for at in cr04_grid.points()})
    cr04 = load("cr04")
    judged = cr04.judge(cr04.claims(runs, cr04.expected))
    assert len(judged) == len(cr04.expected) == 36
    doppler, cells, traffic = cr04.tables(runs, cr04.expected)
    assert {len(row) for row in doppler.rows} == {2 + len(cr04_grid.DOPPLERS)}
    # 25 rows are judged over every channel, the five of figure 9 in both readings; 17 are of downloads without end.
    assert len(doppler.rows) == 25 + 5
    assert {len(row) for row in cells.rows} == {2 + len(cr04_grid.OTHER_CELLS)}
    assert len(cells.rows) == 17 + 5
    assert {len(row) for row in traffic.rows} == {2 + len(cr04_grid.READINGS)}
    assert len(traffic.rows) == 8
    outcome = Outcome(cr04, runs, judged)
    assert "What holds at which Doppler frequency" in claims_page.claim_table(outcome)


@pytest.mark.whole
@pytest.mark.parametrize("key", keys())
def test_every_claim_of_a_paper_holds_or_says_what_was_tried(key):
    outcome = load(key).reproduce()
    output.write(outcome, OUT / key)
    output.show(outcome)
    # Neither a miss without its reason nor a reason without its miss; a caveat stands at a row that holds.
    assert {judged.row.id for judged in outcome.misses} == outcome.paper.tried.keys()
    assert [judged.row.id for judged, _ in outcome.caveats] == sorted(
        outcome.paper.caveats, key=list(outcome.paper.expected).index
    )
    # Where a number is printed and the order alone holds, the size is off: the claim table says by how much.
    assert by_order_alone(outcome) <= outcome.paper.caveats.keys()
    assert claims_page.page(outcome) == (outcome.paper.folder / "claims.md").read_text()


def test_the_mean_over_seeds_is_judged():
    assert judge_row(row(), number(np.array([96.0, 104.0]))).verdict is Verdict.REPRODUCED
    assert judge_row(row(), number(np.array([96.0, 97.0]))).verdict is Verdict.NOT_REPRODUCED


def test_a_run_without_the_number_does_not_reproduce_it():
    judged = judge_row(row(), number(np.array([100.0, math.nan])))
    assert judged.verdict is Verdict.NOT_REPRODUCED
    assert judged.as_json()["value"] is None


def test_values_become_json_numbers_lists_and_truth():
    assert judge_row(row("+-8", "22 / 10"), Claim((29.0, 3.0))).as_json()["value"] == [29.0, 3.0]
    assert judge_row(row("ordering", "true"), Claim(ordering=True)).as_json()["value"] is True
    assert judge_row(row("info", "3"), None).as_json()["value"] is None


def test_a_row_without_a_claim_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="row X-1"):
        judge_row(row(), None)


def paper(rows: list[Row], **more) -> Paper:
    made = Paper("x", "X", points=list, claims=lambda runs, rows: {}, figures=lambda runs: iter(()), **more)
    made.__dict__["expected"] = Expected({r.id: r for r in rows})
    return made


def test_rows_with_a_reason_are_not_checked():
    reason = InDocument("contradictory", "two sections differ")
    judged = paper([row(name="X-T4-1"), row(name="X-T41")], unchecked={"X-T4": reason}).judge({"X-T41": number(100.0)})
    assert (judged[0].verdict, judged[0].note) == (Verdict.NOT_CHECKED, "contradictory: two sections differ")
    assert judged[1].verdict is Verdict.REPRODUCED


REFERENCE = {"key": ("scenario.md", "components.md"), "result": ("json.md",), "component": ("components.md",)}


def exists(missing: Missing) -> bool:
    """Whether the reference lists what a reason calls missing: names are in backquotes at the beginning of a line."""
    pages = "".join((ROOT / "docs" / "reference" / name).read_text() for name in REFERENCE[missing.what])
    return any(re.search(missing.pattern, name) for name in re.findall(r"^(?:\| )?`([^`]+)`", pages, re.MULTILINE))


def test_what_a_reason_calls_missing_does_not_exist():
    reasons = {name: reason for key in keys() for name, reason in load(key).unchecked.items()}
    missing = {name: reason for name, reason in reasons.items() if isinstance(reason, Missing)}
    assert not [name for name, reason in missing.items() if exists(reason)]
    # The search finds what exists.
    assert exists(Missing("result", r"ack_gap", ""))
    assert exists(Missing("key", r"edge\.regulator", ""))
    assert exists(Missing("component", r"umts-rlc", ""))


def test_few_rows_are_unchecked_and_each_has_a_reason():
    unchecked = [row for key in keys() for row in _unchecked(load(key))]
    assert len(unchecked) <= 20
    assert not [row.id for key in keys() for row in _without_reason(load(key))]


def _unchecked(one: Paper) -> list[Row]:
    return [r for r in one.expected.values() if any(f"{r.id}-".startswith(f"{start}-") for start in one.unchecked)]


def _without_reason(one: Paper) -> list[Row]:
    """Rows whose tolerance asks for no verdict, and that have no reason for it."""
    silent = [r for r in one.expected.values() if r.tolerance in ("info", "ignore")]
    return [r for r in silent if r not in _unchecked(one)]


def test_a_miss_tells_what_was_tried():
    judged = paper([row()], tried={"X-1": "a finer tick"}).judge({"X-1": number(50.0, "B 10")})
    assert judged[0].note == "B 10; a finer tick"
    assert paper([row()], tried={"X-1": "a finer tick"}).judge({"X-1": number(100.0)})[0].note == ""


def test_a_claim_without_a_row_is_an_error():
    with pytest.raises(ValueError, match="claims without a row: X-2"):
        paper([row()]).judge({"X-1": number(100.0), "X-2": number(1.0)})


def test_a_point_drops_the_sweep_and_names_itself_by_its_text():
    at = point(grid.SCENARIOS / "variable-delay.toml", {"edge.buffer": "4p"})
    table = tomllib.loads(at)
    assert "sweep" not in table
    assert table["edge"]["buffer"] == "4p"
    # Table 1 item 4 and table 3's Reno are the same simulation, whatever file they come from.
    assert grid.TABLE1[4] == grid.TABLE3["Reno"] == grid.FIG11A["Reno"][100]
    assert grid.TABLE1[8] == grid.FIG13["Reno"][10]


def test_a_run_is_read_in_the_sources_units():
    run = run_object(150e3)
    assert measure.goodput(run) == pytest.approx(150)
    assert measure.packets(run) == pytest.approx(150e3 * 3600 / 8000)
    assert measure.mean_rto(run) == pytest.approx(1.5)
    assert measure.loss_window(run) == 21.5


def test_every_row_of_cr02_gets_a_verdict_and_json_keeps_the_contract(outcome):
    printed = json.loads(json.dumps(outcome.as_json()))
    assert printed["paper"] == "cr02"
    assert [entry["id"] for entry in printed["rows"]] == list(CR02.expected)
    assert len(printed["rows"]) == len(CR02.expected)
    for entry in printed["rows"]:
        keys = {"id", "kind", "value", "expected", "tolerance", "verdict", "note", "effect", "weak", "null_model"}
        assert entry.keys() == keys


def test_json_counts_simulations_and_formulas_apart(outcome):
    printed = json.loads(json.dumps(outcome.as_json()))
    verdicts = {"reproduced": "reproduced", "ordering-holds": "ordering", "sign-only": "sign", "not-reproduced": "not"}
    strong = [entry for entry in printed["rows"] if not entry["weak"]]
    for name, kind in (("simulated", "sim"), ("formulas", "computed"), ("restated", "restated")):
        of_kind = Counter(verdicts.get(entry["verdict"]) for entry in strong if entry["kind"] == kind)
        assert printed["counts"][name] == {key: of_kind[key] for key in ("reproduced", "ordering", "sign", "not")}
    assert sum(printed["counts"]["weak"].values()) == len(printed["rows"]) - len(strong)
    judged = [entry for entry in printed["rows"] if entry["verdict"] != "not-checked"]
    assert sum(sum(of.values()) for of in printed["counts"].values()) == len(judged)
    assert {entry["kind"] for entry in judged} == {"sim", "computed", "restated"}


def test_a_row_whose_value_a_formula_gives_counts_as_a_formula_whatever_the_source_did():
    judged = paper([row(name="X-1"), row(name="X-2")]).judge({"X-1": formula(100.0), "X-2": number(100.0)})
    outcome = Outcome(paper([]), Runs({}), judged)
    assert [entry.as_json()["kind"] for entry in judged] == ["computed", "sim"]
    assert outcome.formulas == outcome.simulated == Counts(reproduced=1, ordering=0, sign=0, missed=0)


def test_a_row_that_repeats_the_input_of_a_formula_is_counted_apart():
    made = paper([row(name="X-1"), row(name="X-2")], restated=["X-1"])
    outcome = Outcome(made, Runs({}), made.judge({"X-1": formula(100.0), "X-2": formula(100.0)}))
    assert [judged.kind for judged in outcome.rows] == ["restated", "computed"]
    assert outcome.formulas == outcome.restated == Counts(reproduced=1, ordering=0, sign=0, missed=0)
    assert "Restated, so that they test nothing: 1." in claims_page.summary(outcome)
    with pytest.raises(ValueError, match="restated without a row: X-3"):
        paper([row()], restated=["X-3"]).judge({})


def test_a_row_that_holds_with_the_null_model_says_so():
    null = NullModel("a sender that does not react to loss", lambda runs, rows: {})
    made = paper([row(name="X-1"), row(name="X-2"), row(name="X-3")], null=null)
    claimed = {"X-1": number(100.0), "X-2": number(101.0), "X-3": number(50.0)}
    judged = made.judge(claimed, {"X-1": number(99.0), "X-2": number(50.0), "X-3": number(100.0)})
    outcome = Outcome(made, Runs({}), judged)
    # The third does not hold with the sender of the source, so that its other verdict counts for nothing.
    assert outcome.null == (2, 1)
    words = "Of 2 rows that hold and are also judged with the null model, a sender that does not react to loss, 1 hold"
    assert words in claims_page.summary(outcome)
    head, _, *lines = claims_page.claim_table(outcome).split("| id |")[1].splitlines()
    null_column = head.split(" | ").index("null")
    shown = [line.split(" | ")[null_column + 1] for line in lines]
    assert shown == ["reproduced", "not-reproduced", "reproduced"]
    plain = Outcome(made, Runs({}), made.judge(claimed))
    assert plain.null is None
    assert "null model" not in claims_page.claim_table(plain)


def test_a_summary_has_a_number_for_each_kind_and_verdict_and_none_over_all():
    rows = [
        row(name="X-1"),
        row(name="X-2"),
        row("ordering", "true", name="X-3"),
        row(kind="computed", name="X-4"),
        row("ignore", name="X-5"),
    ]
    claimed = {"X-1": number(100.0), "X-2": number(50.0), "X-3": Claim(ordering=True), "X-4": number(100.0)}
    made = paper(rows, conditions="Slots of one packet.", caveats={"X-3": "far off", "X-2": "never shown"})
    runs = Runs({"few": [{}] * 3, "many": [{}] * 5})
    outcome = Outcome(made, runs, made.judge(claimed))
    assert claims_page.summary(outcome) == (
        "5 rows. Simulated, 3 to 5 seeds a point: 1 within tolerance, 1 by order only, 0 by sign only, "
        "1 not reproduced. Formulas recomputed: 1 within tolerance, 0 by order only, 0 by sign only, "
        "0 not reproduced. Not checked: 1."
    )
    table = claims_page.claim_table(outcome)
    assert "%" not in table.split("| id |")[0]
    assert table.index("Slots of one packet.") < table.index("Not reproduced") < table.index(claims_page.CAVEATS)
    # A caveat stands beside a row that holds; a miss tells what was tried instead.
    assert "far off" in table
    assert "never shown" not in table


def test_every_computed_row_of_cr02_but_one_holds(outcome):
    judged = [j for j in outcome.rows if j.kind == "computed" and j.verdict is not Verdict.NOT_CHECKED]
    # 9 items x (service rate, 3 models, 3 accuracies), the minimum round trip times of 6 of them, section 3 (4) and
    # 4 (4), figure 13's capacity, table 4's 11 rates and their sum.
    assert len(judged) == 9 * 7 + 6 + 4 + 4 + 1 + 12
    # The accuracy of model 2 rises once, by less than a printed digit.
    assert [j.row.id for j in judged if j.verdict is Verdict.NOT_REPRODUCED] == ["CR02-S4-5"]


def test_rows_that_fitted_the_measured_link_are_restated_and_those_of_its_file_are_judged(outcome):
    verdicts = {j.row.id: j for j in outcome.rows if j.row.id.startswith("CR02-S3-")}
    assert all(verdicts[f"CR02-S3-{fitted}"].kind == "restated" for fitted in (1, 2, 3, 10))
    # Pings over the laws of the profile's two directions.
    assert all(verdicts[f"CR02-S3-{n}"].verdict is Verdict.REPRODUCED for n in (1, 2, 3))
    assert all(verdicts[f"CR02-S3-{n}"].kind == "sim" for n in (4, 7, 8))
    assert verdicts["CR02-S3-11"].verdict is Verdict.REPRODUCED


def test_the_measured_link_is_the_profile():
    judged, profile = tomllib.loads(grid.MEASURED), tomllib.loads((PROFILES / "cdma-1x.toml").read_text())
    assert judged["edge"] == profile["edge"]
    runs = simulate([grid.MEASURED], seeds=1)
    verdicts = {name: judge_row(CR02.expected[name], claim).verdict for name, claim in claims.measured_file(runs)}
    assert [name for name, verdict in verdicts.items() if verdict is Verdict.NOT_REPRODUCED] == ["CR02-S3-7"]


def test_the_claims_page_has_every_row_once(tmp_path, outcome):
    claims_page.write(tmp_path, outcome)
    text = (tmp_path / "claims.md").read_text()
    assert f"\n{len(CR02.expected)} rows. Simulated, 5 seeds a point: " in text
    # Nine rows again for the Doppler frequencies.
    assert len(re.findall(r"^\| CR02-", text, re.MULTILINE)) == len(CR02.expected) + 9


def test_the_page_of_all_papers_counts_as_their_claim_tables_do():
    overview = (ROOT / "papers" / "README.md").read_text()
    for key in keys():
        claims = (ROOT / "papers" / key / "claims.md").read_text()
        simulated, formulas, *_ = re.findall(
            r"(\d+) within tolerance, (\d+) by order only, (\d+) by sign only, (\d+) not reproduced", claims
        )
        weak, *_ = [*re.findall(r"hold whatever happens: (\d+)\.", claims), "0"]
        null, *_ = [*re.findall(r", (\d+) hold with it too", claims), "0"]
        shown = f"({key}/README.md)"
        line = next(line for line in overview.splitlines() if shown in line and line.startswith("|"))
        cells = re.findall(r"\| (\d+) (?=\|)", line + " ")
        assert cells == [*simulated, null, *formulas, weak], key


def test_the_spread_decides_the_digits():
    judged = judge_row(row(), number(np.array([99.512, 100.377])))
    assert claims_page.ours(judged) == "99.94 ± 0.61"
    assert claims_page.ours(judge_row(row(), number(100.0))) == "100"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,value\n", "expected.csv:1: the columns"),
        ("id,source,config,metric,value,unit,tolerance,kind,note,neutral\na,b\n", "expected.csv:2: 10 fields"),
        (
            "id,source,config,metric,value,unit,tolerance,kind,note,neutral\n" + "a,,,,,,,,,\n" * 2,
            "expected.csv:3: id a is repeated",
        ),
    ],
)
def test_a_wrong_expected_file_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "expected.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        expected_file.read(path)


def test_an_unknown_paper_names_the_known_ones():
    with pytest.raises(ValueError, match=r"there are: .*cr02"):
        load("nope")


@pytest.mark.parametrize(("text", "message"), [(b"seed = ", "not TOML: "), (b"\xff", "not UTF-8: ")])
def test_a_scenario_that_cannot_be_read_is_named(tmp_path, text, message):
    path = tmp_path / "wrong.toml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        point(path, {})


def test_an_expected_file_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "expected.csv"
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=f"^{path}: not UTF-8: "):
        expected_file.read(path)


def test_what_a_rerun_writes_is_named_where_the_disk_is_full(tmp_path, outcome):
    (tmp_path / "rows.json").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as error:
        output.write(outcome, tmp_path)
    assert error.value.filename == str(tmp_path / "rows.json")
