//! One connection: what becomes of its requests.

use bytes::Buf;
use tokio::time::Instant;

use super::headers;
use super::session::{End, LARGEST_WINDOW, Session};
use super::stream::{Finish, Input, Outgoing};
use crate::course::{self, AtHead, Course, Death, Then};
use crate::raw::frame;
use crate::{Fault, Last};

/// What one turn puts on the way at most, so that all streams get theirs.
const OUT_CHUNK: usize = 256 << 10;

// === impl Session, requests ===

impl Session {
    /// Follows what was decided at the head; returns whether the request goes on.
    pub(super) fn after_head(&mut self, id: u32, next: AtHead) -> bool {
        match next {
            AtHead::Read => true,
            AtHead::Die(death) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.input = Input::Block;
                }
                self.die(id, death);
                false
            }
            AtHead::Early { answer, drain } => {
                let finish = if drain {
                    Finish::End(Then::Keep)
                } else {
                    Finish::EndEarly
                };
                if let Some(stream) = self.streams.get_mut(&id) {
                    let to_head = stream.order.is_head_request();
                    if stream.input == Input::Done {
                        self.desk.complete(&stream.order);
                    } else {
                        stream.input = if drain { Input::Drain } else { Input::Block };
                    }
                    stream.output = Some(Outgoing::whole(answer, to_head, finish));
                }
                self.schedule(id, self.desk.latency);
                false
            }
        }
    }

    /// Takes the end of a request.
    pub(super) fn request_ends(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        self.desk.complete(&stream.order);
        let drained = stream.input == Input::Drain;
        stream.input = Input::Done;
        if drained {
            if stream.output.is_none() {
                self.streams.remove(&id);
            }
            return;
        }
        if let Some(Fault::GoAway {
            last,
            code,
            applied,
            close,
        }) = stream.order.fault
        {
            if !self.go_away(id, last, code, applied, close) {
                return;
            }
        } else if stream.order.fault.as_ref().is_none_or(Fault::applies) {
            self.last_acted = self.last_acted.max(id);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let to_head = stream.order.is_head_request();
        let output = match course::at_end(&self.desk, &mut stream.order) {
            Course::Die(death) => {
                self.die(id, death);
                return;
            }
            Course::Partial(answer, death) => Outgoing::part(answer, to_head, death),
            Course::Answer(answer, then) => Outgoing::whole(answer, to_head, Finish::End(then)),
            Course::Drip(answer, interval) => Outgoing {
                drip: Some(interval),
                ..Outgoing::whole(answer, to_head, Finish::End(Then::Keep))
            },
        };
        stream.output = Some(output);
        self.schedule(id, self.desk.latency);
    }

    /// Announces the end of the connection; returns whether the request is still to be answered.
    fn go_away(&mut self, id: u32, last: Last, code: u32, applied: bool, close: bool) -> bool {
        let wanted = match last {
            Last::Below => id.saturating_sub(2),
            Last::This => id,
            Last::Max => 0x7fff_ffff,
            Last::Exactly(exactly) => exactly & 0x7fff_ffff,
        };
        let acts = applied && wanted >= id;
        if acts {
            self.last_acted = self.last_acted.max(id);
        }
        if acts && close {
            // Nobody will see the answer, but the request is acted on.
            if let Some(stream) = self.streams.get_mut(&id) {
                self.desk.act(&mut stream.order);
            }
        }
        self.announce(wanted, code);
        if close {
            self.ending = Some(End::Close);
            return false;
        }
        if !acts && self.streams.remove(&id).is_some() && self.announced >= Some(id) {
            // Not acted on, but not announced as such either.
            self.out.extend(frame::rst_stream(id, frame::CANCEL));
        }
        acts
    }

    /// Sends GOAWAY and drops all streams above the last id.
    fn announce(&mut self, wanted: u32, code: u32) {
        // Never below what was acted on, which would be a lie, and never above what was announced
        // before (RFC 9113, section 6.8). What was acted on is below the latter.
        let last = wanted
            .min(self.announced.unwrap_or(u32::MAX))
            .max(self.last_acted);
        self.announced = Some(last);
        self.out.extend(frame::goaway(last, code));
        self.streams.retain(|id, _| *id <= last);
    }

    fn die(&mut self, id: u32, death: Death) {
        match death {
            Death::Close => self.ending = Some(End::Close),
            Death::Reset => self.ending = Some(End::Reset),
            // The stream stays and nothing more happens on it.
            Death::Stall => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.stalled = true;
                }
            }
            Death::ResetStream(code) => {
                self.out.extend(frame::rst_stream(id, code));
                self.streams.remove(&id);
            }
        }
    }
}

// === impl Session, answers ===

impl Session {
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// Does what is due.
    pub(super) fn fire(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                return;
            }
            let id = first.remove();
            self.advance(id);
        }
    }

    fn schedule(&mut self, id: u32, after: std::time::Duration) {
        if after.is_zero() {
            self.advance(id);
            return;
        }
        self.timer_count += 1;
        // A time that cannot be reckoned never comes.
        if let Some(at) = Instant::now().checked_add(after) {
            self.timers.insert((at, self.timer_count), id);
        }
    }

    /// Starts an answer whose time has come, or lets the next drop fall.
    fn advance(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Some(output) = &mut stream.output else {
            return;
        };
        if !output.started {
            output.started = true;
            self.desk.answered(&stream.order, output.answer.status);
            let block = headers::answer(&output.answer, output.promised);
            let ends = output.ends_with_head();
            let frames = headers::frames(id, &block, ends, self.largest_frame);
            self.out.extend(frames);
            if ends {
                self.finish(id);
            } else if let Some(interval) = output.drip {
                self.drip_later(id, interval);
            }
            return;
        }
        if let Some(interval) = output.drip {
            if !output.body.is_empty() && stream.window > 0 && self.window > 0 {
                let drop = output.body.split_to(1);
                stream.window -= 1;
                self.window -= 1;
                self.out.extend(frame::data(id, &drop, false));
            }
            if output.body.is_empty() {
                self.end_body(id);
            } else {
                self.drip_later(id, interval);
            }
        }
    }

    fn drip_later(&mut self, id: u32, interval: std::time::Duration) {
        // Not zero, which would recurse.
        self.schedule(id, interval.max(std::time::Duration::from_micros(1)));
    }

    /// Sends as much of all bodies as the client's windows allow.
    pub(super) fn pump(&mut self) {
        if self.ending.is_some() {
            return;
        }
        let ids: Vec<u32> = self
            .streams
            .iter()
            .filter(|(_, stream)| {
                let output = stream.output.as_ref();
                output.is_some_and(|output| output.started && output.drip.is_none())
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.pump_stream(id);
        }
        if self.streams.is_empty() {
            self.ending = self.ending.or(self.winding_down);
        }
    }

    fn pump_stream(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Some(output) = &mut stream.output else {
            return;
        };
        while !output.body.is_empty() && self.out.len() < OUT_CHUNK {
            let window = stream.window.min(self.window).clamp(0, LARGEST_WINDOW);
            let length = usize::try_from(window)
                .unwrap_or(0)
                .min(self.largest_frame)
                .min(output.body.len());
            if length == 0 {
                return;
            }
            let sent = i64::try_from(length).unwrap_or(window);
            stream.window -= sent;
            self.window -= sent;
            self.out
                .extend(frame::data(id, &output.body[..length], false));
            output.body.advance(length);
        }
        if output.body.is_empty() {
            self.end_body(id);
        }
    }

    /// Ends an answer whose body is out, if it is to be ended.
    fn end_body(&mut self, id: u32) {
        let Some(output) = self
            .streams
            .get_mut(&id)
            .and_then(|stream| stream.output.as_mut())
        else {
            return;
        };
        if let Finish::Die(death) = output.finish {
            if death == Death::Stall {
                // Only once: a stalled answer has nothing more to pump.
                output.started = false;
            }
            self.die(id, death);
            return;
        }
        if output.answer.trailers.is_empty() {
            self.out.extend(frame::data(id, &[], true));
        } else {
            let block = headers::trailers(&output.answer.trailers);
            let frames = headers::frames(id, &block, true, self.largest_frame);
            self.out.extend(frames);
        }
        self.finish(id);
    }

    /// Does what follows a whole answer.
    fn finish(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Some(output) = stream.output.take() else {
            return;
        };
        match stream.input {
            Input::Done => {
                self.streams.remove(&id);
            }
            Input::Drain => {}
            Input::Read | Input::Block => {
                self.out.extend(frame::rst_stream(id, frame::NO_ERROR));
                self.streams.remove(&id);
            }
        }
        let end = match output.finish {
            Finish::End(Then::CloseIdle | Then::StaleRequestTimeout) => End::Close,
            Finish::End(Then::ResetIdle) => End::Reset,
            Finish::End(Then::Keep) | Finish::EndEarly | Finish::Die(_) => return,
        };
        self.announce(self.last_seen, frame::NO_ERROR);
        self.winding_down = Some(end);
    }
}
