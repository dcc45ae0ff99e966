//! The functions of `string` that match patterns, as in `lstrlib.c` of Lua 5.1, with a matcher that
//! can be interrupted ([`super::patterns`]). Also other functions of `string` that may take long.
//!
//! An error leaves by `lua_error`, which jumps over frames that own nothing.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use memchr::memmem;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Result, Table};

use super::patterns::{Capture, Extent, Failure, Matcher, is_plain};
use super::raw::{refuse_at_line, refuse_text};
use super::working::{
    CALL_STEPS, Native, Working, check, check_at, counted, original, own_state, push_own, spend,
    state_at,
};

/// Indexes of the upvalues of a `gmatch` iterator: the subject, the pattern, the next position, and
/// its state.
const ITERATOR_PLACE: c_int = 3;
const ITERATOR_STATE: c_int = 4;

/// Replaces functions of the library.
pub(super) fn replace(working: &Working<'_>, strings: &Table) -> Result<()> {
    let own: [(&str, Native); 5] = [
        ("find", find),
        ("match", find_match),
        ("gmatch", gmatch),
        ("gfind", gmatch),
        ("gsub", gsub),
    ];
    for (name, native) in own {
        strings.raw_set(name, working.function(native, None)?)?;
    }
    let guarded: [(&str, Native); 7] = [
        ("rep", repeat),
        ("format", counted),
        ("lower", counted),
        ("upper", counted),
        ("reverse", counted),
        ("byte", counted),
        ("dump", counted),
    ];
    for (name, native) in guarded {
        let original: Function = strings.raw_get(name)?;
        strings.raw_set(name, working.function(native, Some(original))?)?;
    }
    Ok(())
}

/// The argument or upvalue at `place`. Lua owns the text while the function runs.
unsafe fn text<'t>(state: *mut lua_State, place: c_int) -> &'t [u8] {
    unsafe {
        let mut length = 0;
        let text = ffi::luaL_checklstring(state, place, &raw mut length);
        std::slice::from_raw_parts(text.cast(), length)
    }
}

/// A pattern, and whether it matches only at the beginning.
fn without_anchor(pattern: &[u8]) -> (&[u8], bool) {
    match pattern.strip_prefix(b"^") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    }
}

/// `string.rep`. Stock Lua would loop two billion times over an empty text.
unsafe extern "C-unwind" fn repeat(state: *mut lua_State) -> c_int {
    unsafe {
        let length = text(state, 1).len();
        let count = ffi::luaL_checkinteger(state, 2) as i64 as i32;
        if length == 0 {
            push_text(state, b"");
            return 1;
        }
        let count = usize::try_from(count).unwrap_or(0);
        let steps = length.saturating_mul(count).saturating_add(CALL_STEPS);
        // Before the call, because it may run out of memory, and after it, because the check looks
        // at the memory in use.
        spend(state, steps);
        let results = original(state);
        spend(state, steps);
        results
    }
}

unsafe extern "C-unwind" fn find(state: *mut lua_State) -> c_int {
    unsafe { search(state, true) }
}

unsafe extern "C-unwind" fn find_match(state: *mut lua_State) -> c_int {
    unsafe { search(state, false) }
}

/// `string.find` or `string.match`.
unsafe fn search(state: *mut lua_State, is_find: bool) -> c_int {
    unsafe {
        let (subject, pattern) = (text(state, 1), text(state, 2));
        let start = start_of(ffi::luaL_optinteger(state, 3, 1) as i64, subject.len());
        spend(state, CALL_STEPS);
        if is_find && (ffi::lua_toboolean(state, 4) != 0 || is_plain(pattern)) {
            let rest = subject.get(start..).unwrap_or_default();
            let found = memmem::find(rest, pattern);
            spend(state, found.unwrap_or(rest.len()));
            return match found {
                Some(found) => {
                    ffi::lua_pushnumber(state, (start + found + 1) as f64);
                    ffi::lua_pushnumber(state, (start + found + pattern.len()) as f64);
                    2
                }
                None => nothing(state),
            };
        }
        let own = own_state(state);
        let (pattern, is_anchored) = without_anchor(pattern);
        let mut matcher = Matcher::new(subject, pattern, |steps| own.go_on_after(steps));
        let found = match is_anchored {
            true => matcher.match_at(start).map(|end| Some((start, end?))),
            false => matcher.find_from(start),
        };
        match found {
            Ok(Some((from, to))) if is_find => {
                ffi::lua_pushnumber(state, (from + 1) as f64);
                ffi::lua_pushnumber(state, to as f64);
                2 + push_captures(state, subject, matcher.captures(), None)
            }
            Ok(Some(whole)) => push_captures(state, subject, matcher.captures(), Some(whole)),
            Ok(None) => nothing(state),
            Err(failure) => {
                check(state);
                fail(state, failure)
            }
        }
    }
}

unsafe fn nothing(state: *mut lua_State) -> c_int {
    unsafe { ffi::lua_pushnil(state) }
    1
}

/// Start of a search: counted from 1, or from the end if negative.
fn start_of(place: i64, length: usize) -> usize {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = if place < 0 {
        place.saturating_add(length + 1)
    } else {
        place
    };
    let start = (place.max(0) - 1).clamp(0, length);
    usize::try_from(start).unwrap_or(0)
}

/// Raises a matcher's error. Call it after a check, which has already ended the script if it should
/// end.
unsafe fn fail(state: *mut lua_State, failure: Failure) -> c_int {
    unsafe {
        refuse_text(
            state,
            match failure {
                Failure::Wrong(text) => text,
                Failure::Ended => c"the script is ended",
            },
        )
    }
}

unsafe fn push_text(state: *mut lua_State, text: &[u8]) {
    unsafe { ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len()) };
}

/// Pushes a capture. Without captures the first is the whole match.
unsafe fn push_capture(
    state: *mut lua_State,
    subject: &[u8],
    captures: &[Capture],
    number: usize,
    whole: (usize, usize),
) {
    let slice = |start, end| subject.get(start..end).unwrap_or_default();
    unsafe {
        match captures.get(number) {
            None if number == 0 => push_text(state, slice(whole.0, whole.1)),
            None => {
                refuse_text(state, c"invalid capture index");
            }
            Some(capture) => match capture.extent {
                Extent::Unfinished => {
                    refuse_text(state, c"unfinished capture");
                }
                Extent::Position => ffi::lua_pushnumber(state, (capture.start + 1) as f64),
                Extent::Length(length) => {
                    push_text(state, slice(capture.start, capture.start + length));
                }
            },
        }
    }
}

/// Pushes all captures. If there are none, pushes the whole match if requested. Returns the number
/// pushed.
unsafe fn push_captures(
    state: *mut lua_State,
    subject: &[u8],
    captures: &[Capture],
    whole: Option<(usize, usize)>,
) -> c_int {
    let count = captures.len().max(usize::from(whole.is_some()));
    let results = c_int::try_from(count).unwrap_or(c_int::MAX);
    unsafe {
        ffi::luaL_checkstack(state, results, c"too many captures".as_ptr());
        for number in 0..count {
            push_capture(state, subject, captures, number, whole.unwrap_or((0, 0)));
        }
    }
    results
}

unsafe extern "C-unwind" fn gmatch(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checkstring(state, 1);
        ffi::luaL_checkstring(state, 2);
        ffi::lua_settop(state, 2);
        ffi::lua_pushnumber(state, 0.0);
        push_own(state);
        ffi::lua_pushcclosure(state, next_match, 5);
        1
    }
}

/// The iterator of `gmatch`.
unsafe extern "C-unwind" fn next_match(state: *mut lua_State) -> c_int {
    unsafe {
        let subject = text(state, ffi::lua_upvalueindex(1));
        let pattern = text(state, ffi::lua_upvalueindex(2));
        let start = ffi::lua_tonumber(state, ffi::lua_upvalueindex(ITERATOR_PLACE)) as usize;
        let own = state_at(state, ITERATOR_STATE);
        let mut matcher = Matcher::new(subject, pattern, |steps| own.go_on_after(steps));
        match matcher.find_from(start) {
            Ok(Some((from, to))) => {
                // After an empty match it continues one position further.
                let next = if from == to { to + 1 } else { to };
                ffi::lua_pushnumber(state, next as f64);
                ffi::lua_replace(state, ffi::lua_upvalueindex(ITERATOR_PLACE));
                push_captures(state, subject, matcher.captures(), Some((from, to)))
            }
            Ok(None) => 0,
            Err(failure) => {
                check_at(state, ITERATOR_STATE + 1);
                fail(state, failure)
            }
        }
    }
}

unsafe extern "C-unwind" fn gsub(state: *mut lua_State) -> c_int {
    unsafe {
        let (subject, pattern) = (text(state, 1), text(state, 2));
        let kind = ffi::lua_type(state, 3);
        let most = (subject.len() + 1) as i64 as i32;
        let most = match ffi::lua_type(state, 4) > ffi::LUA_TNIL {
            true => ffi::luaL_checkinteger(state, 4) as i64 as i32,
            false => most,
        };
        if !matches!(
            kind,
            ffi::LUA_TNUMBER | ffi::LUA_TSTRING | ffi::LUA_TFUNCTION | ffi::LUA_TTABLE
        ) {
            return ffi::luaL_argerror(state, 3, c"string/function/table expected".as_ptr());
        }
        let own = own_state(state);
        let (pattern, is_anchored) = without_anchor(pattern);
        let mut matcher = Matcher::new(subject, pattern, |steps| own.go_on_after(steps));
        let mut place = MaybeUninit::uninit();
        let result: *mut ffi::luaL_Buffer = place.as_mut_ptr();
        ffi::luaL_buffinit(state, result);
        let mut at = 0;
        let mut count = 0;
        while count < most {
            let end = match matcher.match_at(at) {
                Ok(end) => end,
                Err(failure) => {
                    check(state);
                    return fail(state, failure);
                }
            };
            if let Some(end) = end {
                count += 1;
                spend(state, CALL_STEPS);
                let whole = (at, end);
                add_replacement(state, result, kind, subject, matcher.captures(), whole);
            }
            match (end, subject.get(at)) {
                (Some(end), _) if end > at => at = end,
                (_, Some(byte)) => {
                    ffi::luaL_addchar(result, *byte as c_char);
                    at += 1;
                }
                (_, None) => break,
            }
            if is_anchored {
                break;
            }
        }
        let rest = subject.get(at..).unwrap_or_default();
        ffi::luaL_addlstring(result, rest.as_ptr().cast(), rest.len());
        ffi::luaL_pushresult(result);
        ffi::lua_pushnumber(state, count.into());
        2
    }
}

/// Adds the replacement of a match.
unsafe fn add_replacement(
    state: *mut lua_State,
    result: *mut ffi::luaL_Buffer,
    kind: c_int,
    subject: &[u8],
    captures: &[Capture],
    whole: (usize, usize),
) {
    unsafe {
        match kind {
            ffi::LUA_TFUNCTION => {
                ffi::lua_pushvalue(state, 3);
                let count = push_captures(state, subject, captures, Some(whole));
                ffi::lua_call(state, count, 1);
            }
            ffi::LUA_TTABLE => {
                push_capture(state, subject, captures, 0, whole);
                ffi::lua_gettable(state, 3);
            }
            _ => {
                add_template(state, result, subject, captures, whole);
                return;
            }
        }
        if ffi::lua_toboolean(state, -1) == 0 {
            ffi::lua_settop(state, -2);
            push_text(state, subject.get(whole.0..whole.1).unwrap_or_default());
        } else if ffi::lua_isstring(state, -1) == 0 {
            ffi::lua_pushstring(state, c"invalid replacement value (a ".as_ptr());
            ffi::lua_pushstring(state, ffi::luaL_typename(state, -2));
            ffi::lua_pushstring(state, c")".as_ptr());
            ffi::lua_concat(state, 3);
            refuse_at_line(state);
        }
        ffi::luaL_addvalue(result);
    }
}

/// Adds the text that replaces a match, with its captures for `%0` to `%9`.
unsafe fn add_template(
    state: *mut lua_State,
    result: *mut ffi::luaL_Buffer,
    subject: &[u8],
    captures: &[Capture],
    whole: (usize, usize),
) {
    unsafe {
        let template = text(state, 3);
        spend(state, template.len());
        let mut bytes = template.iter();
        while let Some(byte) = bytes.next() {
            if *byte != b'%' {
                ffi::luaL_addchar(result, *byte as c_char);
                continue;
            }
            // A C string ends with a zero.
            match bytes.next().copied().unwrap_or(0) {
                b'0' => {
                    let matched = subject.get(whole.0..whole.1).unwrap_or_default();
                    ffi::luaL_addlstring(result, matched.as_ptr().cast(), matched.len());
                }
                digit if digit.is_ascii_digit() => {
                    let number = usize::from(digit - b'1');
                    push_capture(state, subject, captures, number, whole);
                    ffi::luaL_addvalue(result);
                }
                other => ffi::luaL_addchar(result, other as c_char),
            }
        }
    }
}
