//! The functions of `include/ackclock.h`, which documents them.
//!
//! No panic crosses the boundary: a call that fails in Rust returns [`Refusal::Failed`], like every later call. Pointers
//! are checked for null and alignment, structs for their size.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ackclock_core::{Flags, FlowId, Segment, Time, is_protected};
use ackclock_edge::Regulator;
use ackclock_link::LinkView;

use crate::abi::{
    AckclockOutput, AckclockSegment, AckclockView, Refusal, Sized32, VERSION, cause, time, verdict,
};
use crate::flows::Flows;

/// The regulators of a host; opaque in C.
pub struct AckclockRegulator {
    flows: Flows,
    /// Whether a call has panicked.
    failed: bool,
}

/// Version of the library's interface.
#[unsafe(no_mangle)]
pub extern "C" fn ackclock_version() -> u32 {
    VERSION
}

/// Message for a negative return value.
#[unsafe(no_mangle)]
pub extern "C" fn ackclock_error_text(code: i32) -> *const c_char {
    let refusal = Refusal::ALL.into_iter().find(|&refusal| refusal as i32 == code);
    refusal.map_or(c"no error", Refusal::text).as_ptr()
}

/// Returns 1 if the options of a TCP header with these flags forbid changes of the header, or 0.
///
/// # Safety
/// `options` must be null or readable for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_is_protected(options: *const u8, size: usize, flags: u8) -> i32 {
    if size == 0 {
        return 0;
    }
    if options.is_null() {
        return Refusal::Pointer as i32;
    }
    if size > MOST_OPTIONS {
        return Refusal::Value as i32;
    }
    // SAFETY: the pointer is not null, and the caller promises `size` readable bytes.
    let options = unsafe { std::slice::from_raw_parts(options, size) };
    is_protected(options, Flags(flags)).into()
}

/// Largest length of the options of a TCP header, bytes.
const MOST_OPTIONS: usize = 40;

/// Creates the regulators that `table` describes, or writes an error message and returns null.
///
/// # Safety
/// `table` must be null or a string that ends with NUL; `error` must be null or have room for `error_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_regulator_new(
    table: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut AckclockRegulator {
    if table.is_null() {
        // SAFETY: the caller promises room for `error_size` bytes, if not null.
        unsafe { write_text(error, error_size, "regulator: the table is a null pointer") };
        return std::ptr::null_mut();
    }
    // SAFETY: the pointer is not null, and the caller promises a string that ends with NUL.
    let table = unsafe { CStr::from_ptr(table) };
    let made = catch_unwind(|| match table.to_str() {
        Ok(text) => Flows::new(text),
        Err(error) => Err(format!("regulator: the table is not UTF-8: {error}")),
    });
    let message = match made {
        Ok(Ok(flows)) => return Box::into_raw(Box::new(AckclockRegulator { flows, failed: false })),
        Ok(Err(message)) => message,
        Err(_) => "regulator: the library failed on this table".to_owned(),
    };
    // SAFETY: the caller promises room for `error_size` bytes, if not null.
    unsafe { write_text(error, error_size, &message) };
    std::ptr::null_mut()
}

/// Frees the regulators. Null is ignored.
///
/// # Safety
/// `regulator` must be null, or come from [`ackclock_regulator_new`] and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_regulator_free(regulator: *mut AckclockRegulator) {
    if !regulator.is_null() {
        // SAFETY: the caller promises that the pointer came from `Box::into_raw` and is not used again.
        let regulator = unsafe { Box::from_raw(regulator) };
        // A panic while memory is freed must not reach C; the memory is gone either way.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(regulator)));
    }
}

/// Opens a flow of a user.
///
/// # Safety
/// `regulator` must be null or a live pointer from [`ackclock_regulator_new`], used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_open_flow(regulator: *mut AckclockRegulator, flow: u32, user: u32) -> i32 {
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, |flows| flows.open(FlowId(flow), user).map(|()| 0)) }
}

/// Closes a flow, and makes its held segments and kept copies output.
///
/// # Safety
/// As for [`ackclock_open_flow`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_close_flow(regulator: *mut AckclockRegulator, now: u64, flow: u32) -> i32 {
    let call = |flows: &mut Flows| {
        flows.advance(time(now)?)?;
        flows.close(FlowId(flow)).map(|()| 0)
    };
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, call) }
}

/// Decides about a data segment before it enters the queue.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_data(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, _, segment: Segment, view| flows.on_data(&segment, view).map(verdict);
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Reports that the host has no room for the copy that the verdict about a data segment requested.
///
/// # Safety
/// As for [`ackclock_open_flow`]; `segment` must be null or point to a readable struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_copy_refused(
    regulator: *mut AckclockRegulator,
    segment: *const AckclockSegment,
) -> i32 {
    // SAFETY: the caller promises that `segment` is null or readable.
    let segment = unsafe { read(segment) };
    let call = |flows: &mut Flows| {
        let segment = segment?.segment()?;
        report(flows, segment.flow, |regulator| regulator.on_copy_refused(&segment))
    };
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, call) }
}

/// Reports that a segment has entered the queue.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_queued(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, now, segment: Segment, view| {
        report(flows, segment.flow, |regulator| regulator.on_queued(now, &segment, view))
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Reports that a segment was refused by the queue or dropped later.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_dropped(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    why: u32,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, now, segment: Segment, view| {
        let cause = cause(why)?;
        report(flows, segment.flow, |regulator| regulator.on_dropped(now, &segment, cause, view))
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Reports that the last byte of a segment has left the queue.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_departed(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, now, segment: Segment, view| {
        report(flows, segment.flow, |regulator| regulator.on_departed(now, &segment, view))
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Reports that a segment no longer counts against the buffer.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_freed(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, now, segment: Segment, view| {
        report(flows, segment.flow, |regulator| regulator.on_freed(now, &segment, view))
    };
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Reports that the queue of a flow is empty and no segment is in transmission.
///
/// # Safety
/// As for [`ackclock_open_flow`]; `view` must be null or point to a readable struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_idle(
    regulator: *mut AckclockRegulator,
    now: u64,
    flow: u32,
    view: *const AckclockView,
) -> i32 {
    let call =
        |flows: &mut Flows, now, view| report(flows, FlowId(flow), |regulator| regulator.on_idle(now, view));
    // SAFETY: the caller's promises are passed on.
    unsafe { with_view(regulator, now, view, call) }
}

/// Handles a TCP segment from the mobile that has an ACK or a SYN.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or point to readable structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_ack(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, _, segment, view| flows.on_ack(segment, view).map(|()| 0);
    // SAFETY: the caller's promises are passed on.
    unsafe { with_segment(regulator, now, segment, view, call) }
}

/// Handles the timeout of the regulator that serves `flow`. Calls before the deadline change nothing.
///
/// # Safety
/// As for [`ackclock_on_idle`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_on_timeout(
    regulator: *mut AckclockRegulator,
    now: u64,
    flow: u32,
    view: *const AckclockView,
) -> i32 {
    let call = |flows: &mut Flows, _, view| flows.on_timeout(FlowId(flow), view).map(|()| 0);
    // SAFETY: the caller's promises are passed on.
    unsafe { with_view(regulator, now, view, call) }
}

/// Writes the next action into `output` and returns 1, or returns 0 without an action.
///
/// # Safety
/// As for [`ackclock_open_flow`]; `output` must be null or point to a writable struct with its size set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_poll_output(
    regulator: *mut AckclockRegulator,
    now: u64,
    output: *mut AckclockOutput,
) -> i32 {
    // SAFETY: the caller promises that `output` is null or readable.
    let room = unsafe { read(output) };
    let call = |flows: &mut Flows| {
        room?;
        flows.advance(time(now)?)?;
        let Some(next) = flows.poll_output() else { return Ok(0) };
        // SAFETY: `read` has checked the pointer and the size, and the caller promises a writable struct.
        unsafe { output.write((&next).into()) };
        Ok(1)
    };
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, call) }
}

/// Writes the next deadline and the flow to name in [`ackclock_on_timeout`], and returns 1; returns 0 without a deadline.
///
/// # Safety
/// As for [`ackclock_open_flow`]; the other pointers must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackclock_poll_timeout(
    regulator: *mut AckclockRegulator,
    deadline: *mut u64,
    flow: *mut u32,
) -> i32 {
    let call = |flows: &mut Flows| {
        check(deadline)?;
        check(flow)?;
        let Some((at, of)) = flows.poll_timeout() else { return Ok(0) };
        // SAFETY: both pointers are aligned and not null, and the caller promises that they are writable.
        unsafe {
            deadline.write(at.as_nanos());
            flow.write(of.0);
        }
        Ok(1)
    };
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, call) }
}

fn report(flows: &mut Flows, flow: FlowId, call: impl FnOnce(&mut dyn Regulator)) -> Result<i32, Refusal> {
    flows.call(flow, call).map(|_| 0)
}

/// Calls `call` with the segment and the view that C passed, at `now`.
///
/// # Safety
/// As for [`ackclock_on_data`].
unsafe fn with_segment(
    regulator: *mut AckclockRegulator,
    now: u64,
    segment: *const AckclockSegment,
    view: *const AckclockView,
    call: impl FnOnce(&mut Flows, Time, Segment, LinkView) -> Result<i32, Refusal>,
) -> i32 {
    // SAFETY: the caller promises that `segment` is null or readable.
    let segment = unsafe { read(segment) };
    let call = |flows: &mut Flows, now, view| call(flows, now, segment?.segment()?, view);
    // SAFETY: the caller's promises are passed on.
    unsafe { with_view(regulator, now, view, call) }
}

/// Calls `call` with the view that C passed, at `now`.
///
/// # Safety
/// As for [`ackclock_on_idle`].
unsafe fn with_view(
    regulator: *mut AckclockRegulator,
    now: u64,
    view: *const AckclockView,
    call: impl FnOnce(&mut Flows, Time, LinkView) -> Result<i32, Refusal>,
) -> i32 {
    // SAFETY: the caller promises that `view` is null or readable.
    let view = unsafe { read(view) };
    let call = |flows: &mut Flows| {
        let (now, view) = (time(now)?, view?.view()?);
        flows.advance(now)?;
        call(flows, now, view)
    };
    // SAFETY: the caller's promise about `regulator` is passed on.
    unsafe { with(regulator, call) }
}

/// Calls `call`, and returns its result or the number of the refusal. After a panic, every call is refused.
///
/// # Safety
/// As for [`ackclock_open_flow`].
unsafe fn with(
    regulator: *mut AckclockRegulator,
    call: impl FnOnce(&mut Flows) -> Result<i32, Refusal>,
) -> i32 {
    if check(regulator).is_err() {
        return Refusal::Pointer as i32;
    }
    // SAFETY: the pointer is aligned and not null, and the caller promises that it is live and used by no other thread.
    let AckclockRegulator { flows, failed } = unsafe { &mut *regulator };
    let answer = match *failed {
        true => Err(Refusal::Failed),
        false => catch_unwind(AssertUnwindSafe(|| call(flows))).unwrap_or(Err(Refusal::Failed)),
    };
    *failed |= answer == Err(Refusal::Failed);
    answer.unwrap_or_else(|refusal| refusal as i32)
}

fn check<T>(pointer: *const T) -> Result<(), Refusal> {
    if pointer.is_null() || !pointer.is_aligned() { Err(Refusal::Pointer) } else { Ok(()) }
}

/// Reads a struct, if its size is that of this version.
///
/// # Safety
/// `pointer` must be null or point to a readable struct of the size that the struct states.
unsafe fn read<T: Sized32>(pointer: *const T) -> Result<T, Refusal> {
    check(pointer)?;
    // SAFETY: the pointer is aligned and not null, and every `Sized32` starts with its size as a `u32`.
    let size = unsafe { pointer.cast::<u32>().read() };
    if size as usize != size_of::<T>() {
        return Err(Refusal::Size);
    }
    // SAFETY: the caller promises a readable struct of this size, and all bytes are valid for a `Sized32`.
    Ok(unsafe { pointer.read() })
}

/// Writes a text, cut to the room and ended with NUL.
///
/// # Safety
/// `room` must be null or writable for `size` bytes.
unsafe fn write_text(room: *mut c_char, size: usize, text: &str) {
    if room.is_null() || size == 0 {
        return;
    }
    let length = text.floor_char_boundary(size - 1);
    // SAFETY: `length + 1` bytes are at most `size`, and the caller promises that these are writable.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), room, length);
        room.add(length).write(0);
    }
}
