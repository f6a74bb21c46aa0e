//! The steps that a builder has been given, and how they make a stack.

use tower_layer::Stack;
use tower_outcome_core::{ConfigError, WitnessLayer};

use super::{
    OutboundError,
    step::{
        AuthRefresh, ConnectionLimit, EachAttempt, EachRequest, ExpiryGuard, Facts, IdempotencyKey,
        Left, RateLimit, Reconcile, Replay, Retry, Seal, Shared, Sign, Step, Time, TimeStep,
        Witness,
    },
};

/// The steps that a builder has been given: a type for each place in the order of the stack, [`Left`]
/// where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps<
    Rp,
    Ti = Left,
    Ke = Left,
    Rt = Left,
    At = Left,
    Rc = Left,
    Au = Left,
    Rl = Left,
    Co = Left,
    Gu = Left,
    Rq = Left,
    Si = Left,
    Wi = WitnessLayer,
    Se = Left,
> {
    replay: Rp,
    timeouts: Ti,
    idempotency_key: Ke,
    retry: Rt,
    each_attempt: At,
    reconcile: Rc,
    auth_refresh: Au,
    rate_limit: Rl,
    connection_limit: Co,
    expiry_guard: Gu,
    each_request: Rq,
    sign: Si,
    witness: Wi,
    seal: Se,
}

/// Steps to which one of the kind `K` can be added: there is none yet.
#[diagnostic::on_unimplemented(
    message = "there is a step `{K}` already",
    note = "each step is given once"
)]
pub trait Put<K, T> {
    /// The steps with the new one.
    type With;

    /// Adds it.
    fn put(self, step: T) -> Self::With;
}

/// Steps that make a stack.
#[diagnostic::on_unimplemented(message = "these steps do not make a stack")]
pub trait Finish<C> {
    /// The layers, the outermost first to be called.
    type Layers;

    /// Builds all layers.
    ///
    /// # Errors
    ///
    /// All that is wrong with any.
    fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layers, OutboundError>;
}

/// Layers from the outermost to the innermost, as one type.
type Nest<Rp, Tc, Ke, Rt, At, Rc, Au, Rl, Co, Gu, Rq, Si, Ta, Wi, Se> = Below<
    Below<
        Below<
            Below<
                Below<
                    Below<
                        Below<
                            Below<
                                Below<
                                    Below<Below<Below<Below<Below<Rp, Tc>, Ke>, Rt>, At>, Rc>,
                                    Au,
                                >,
                                Rl,
                            >,
                            Co,
                        >,
                        Gu,
                    >,
                    Rq,
                >,
                Si,
            >,
            Ta,
        >,
        Wi,
    >,
    Se,
>;

/// A layer below others.
type Below<Above, Layer> = Stack<Layer, Above>;

// === impl Steps ===

impl Steps<Left> {
    pub(super) const fn none() -> Self {
        Self {
            replay: Left,
            timeouts: Left,
            idempotency_key: Left,
            retry: Left,
            each_attempt: Left,
            reconcile: Left,
            auth_refresh: Left,
            rate_limit: Left,
            connection_limit: Left,
            expiry_guard: Left,
            each_request: Left,
            sign: Left,
            witness: WitnessLayer::new(),
            seal: Left,
        }
    }
}

/// Implements [`Put`] for one place.
macro_rules! place {
    ($kind:ty, $field:ident: $old:ty => [$($other:ident)*] [$($before:ident)*] [$($after:ident)*] [$($kept:ident)*]) => {
        impl<$($other,)* T> Put<$kind, T> for Steps<$($before,)* $old, $($after),*> {
            type With = Steps<$($before,)* T, $($after),*>;

            #[inline]
            fn put(self, step: T) -> Self::With {
                Steps {
                    $field: step,
                    $($kept: self.$kept,)*
                }
            }
        }
    };
}

place!(Replay, replay: Left => [Ti Ke Rt At Rc Au Rl Co Gu Rq Si Wi Se] [] [Ti Ke Rt At Rc Au Rl Co Gu Rq Si Wi Se]
    [timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(Time, timeouts: Left => [Rp Ke Rt At Rc Au Rl Co Gu Rq Si Wi Se] [Rp] [Ke Rt At Rc Au Rl Co Gu Rq Si Wi Se]
    [replay idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(IdempotencyKey, idempotency_key: Left => [Rp Ti Rt At Rc Au Rl Co Gu Rq Si Wi Se] [Rp Ti] [Rt At Rc Au Rl Co Gu Rq Si Wi Se]
    [replay timeouts retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(Retry, retry: Left => [Rp Ti Ke At Rc Au Rl Co Gu Rq Si Wi Se] [Rp Ti Ke] [At Rc Au Rl Co Gu Rq Si Wi Se]
    [replay timeouts idempotency_key each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(EachAttempt, each_attempt: Left => [Rp Ti Ke Rt Rc Au Rl Co Gu Rq Si Wi Se] [Rp Ti Ke Rt] [Rc Au Rl Co Gu Rq Si Wi Se]
    [replay timeouts idempotency_key retry reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(Reconcile, reconcile: Left => [Rp Ti Ke Rt At Au Rl Co Gu Rq Si Wi Se] [Rp Ti Ke Rt At] [Au Rl Co Gu Rq Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt auth_refresh rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(AuthRefresh, auth_refresh: Left => [Rp Ti Ke Rt At Rc Rl Co Gu Rq Si Wi Se] [Rp Ti Ke Rt At Rc] [Rl Co Gu Rq Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile rate_limit connection_limit expiry_guard each_request sign witness seal]);
place!(RateLimit, rate_limit: Left => [Rp Ti Ke Rt At Rc Au Co Gu Rq Si Wi Se] [Rp Ti Ke Rt At Rc Au] [Co Gu Rq Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh connection_limit expiry_guard each_request sign witness seal]);
place!(ConnectionLimit, connection_limit: Left => [Rp Ti Ke Rt At Rc Au Rl Gu Rq Si Wi Se] [Rp Ti Ke Rt At Rc Au Rl] [Gu Rq Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit expiry_guard each_request sign witness seal]);
place!(ExpiryGuard, expiry_guard: Left => [Rp Ti Ke Rt At Rc Au Rl Co Rq Si Wi Se] [Rp Ti Ke Rt At Rc Au Rl Co] [Rq Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit each_request sign witness seal]);
place!(EachRequest, each_request: Left => [Rp Ti Ke Rt At Rc Au Rl Co Gu Si Wi Se] [Rp Ti Ke Rt At Rc Au Rl Co Gu] [Si Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard sign witness seal]);
place!(Sign, sign: Left => [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq Wi Se] [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq] [Wi Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request witness seal]);
place!(Witness, witness: WitnessLayer => [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq Si Se] [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq Si] [Se]
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign seal]);
place!(Seal, seal: Left => [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq Si Wi] [Rp Ti Ke Rt At Rc Au Rl Co Gu Rq Si Wi] []
    [replay timeouts idempotency_key retry each_attempt reconcile auth_refresh rate_limit connection_limit expiry_guard each_request sign witness]);

impl<C, Rp, Ti, Ke, Rt, At, Rc, Au, Rl, Co, Gu, Rq, Si, Wi, Se> Finish<C>
    for Steps<Rp, Ti, Ke, Rt, At, Rc, Au, Rl, Co, Gu, Rq, Si, Wi, Se>
where
    Rp: Step<Replay, C>,
    Ti: TimeStep,
    Ke: Step<IdempotencyKey, C>,
    Rt: Step<Retry, C>,
    At: Step<EachAttempt, C>,
    Rc: Step<Reconcile, C>,
    Au: Step<AuthRefresh, C>,
    Rl: Step<RateLimit, C>,
    Co: Step<ConnectionLimit, C>,
    Gu: Step<ExpiryGuard, C>,
    Rq: Step<EachRequest, C>,
    Si: Step<Sign, C>,
    Wi: Step<Witness, C>,
    Se: Step<Seal, C>,
{
    type Layers = Nest<
        Rp::Layer,
        Ti::Call,
        Ke::Layer,
        Rt::Layer,
        At::Layer,
        Rc::Layer,
        Au::Layer,
        Rl::Layer,
        Co::Layer,
        Gu::Layer,
        Rq::Layer,
        Si::Layer,
        Ti::Attempt,
        Wi::Layer,
        Se::Layer,
    >;

    fn finish(self, shared: &Shared<C>, facts: &mut Facts) -> Result<Self::Layers, OutboundError> {
        let mut wrong = Vec::new();
        let replay = noted("replay", self.replay.finish(shared, facts), &mut wrong);
        let timeouts = noted("timeouts", self.timeouts.finish(facts), &mut wrong);
        let idempotency_key = noted(
            "idempotency_key",
            self.idempotency_key.finish(shared, facts),
            &mut wrong,
        );
        let retry = noted("retry", self.retry.finish(shared, facts), &mut wrong);
        let each_attempt = noted(
            "each_attempt",
            self.each_attempt.finish(shared, facts),
            &mut wrong,
        );
        let reconcile = noted(
            "reconcile",
            self.reconcile.finish(shared, facts),
            &mut wrong,
        );
        let auth_refresh = noted(
            "auth_refresh",
            self.auth_refresh.finish(shared, facts),
            &mut wrong,
        );
        let rate_limit = noted(
            "rate_limit",
            self.rate_limit.finish(shared, facts),
            &mut wrong,
        );
        let connection_limit = noted(
            "connection_limit",
            self.connection_limit.finish(shared, facts),
            &mut wrong,
        );
        let expiry_guard = noted(
            "expiry_guard",
            self.expiry_guard.finish(shared, facts),
            &mut wrong,
        );
        let each_request = noted(
            "each_request",
            self.each_request.finish(shared, facts),
            &mut wrong,
        );
        let sign = noted("sign", self.sign.finish(shared, facts), &mut wrong);
        let witness = noted("witness", self.witness.finish(shared, facts), &mut wrong);
        let seal = noted("seal", self.seal.finish(shared, facts), &mut wrong);
        facts.check(&mut wrong);
        match (
            replay,
            timeouts,
            idempotency_key,
            retry,
            each_attempt,
            reconcile,
            auth_refresh,
            rate_limit,
            connection_limit,
            expiry_guard,
            each_request,
            sign,
            witness,
            seal,
        ) {
            (
                Some(replay),
                Some((call, attempt)),
                Some(idempotency_key),
                Some(retry),
                Some(each_attempt),
                Some(reconcile),
                Some(auth_refresh),
                Some(rate_limit),
                Some(connection_limit),
                Some(expiry_guard),
                Some(each_request),
                Some(sign),
                Some(witness),
                Some(seal),
            ) if wrong.is_empty() => {
                let layers = below(replay, call);
                let layers = below(layers, idempotency_key);
                let layers = below(layers, retry);
                let layers = below(layers, each_attempt);
                let layers = below(layers, reconcile);
                let layers = below(layers, auth_refresh);
                let layers = below(layers, rate_limit);
                let layers = below(layers, connection_limit);
                let layers = below(layers, expiry_guard);
                let layers = below(layers, each_request);
                let layers = below(layers, sign);
                let layers = below(layers, attempt);
                let layers = below(layers, witness);
                Ok(below(layers, seal))
            }
            _ => Err(OutboundError::new(wrong)),
        }
    }
}

/// Puts a layer below others.
const fn below<Above, Layer>(above: Above, layer: Layer) -> Stack<Layer, Above> {
    Stack::new(layer, above)
}

/// Returns what was built, or notes what is wrong with it.
fn noted<T>(
    step: &'static str,
    built: Result<T, ConfigError>,
    wrong: &mut Vec<(&'static str, ConfigError)>,
) -> Option<T> {
    match built {
        Ok(layer) => Some(layer),
        Err(error) => {
            wrong.push((step, error));
            None
        }
    }
}
