-- The first paid period that the ledger knows need not be the first there was: the cause says so.

set local role :"projector";

comment on column read_model.lifecycle_moment.cause is
    'new_paid: history_missing where it continues a life that began before it, of which the ledger '
    'knows nothing; churn: voluntary, involuntary, price, product, refund, other; recovered: '
    'in_grace, after_grace, after_expiry; reactivated: returning, new_run, win_back; '
    'churn_corrected: refund_reversed, late_renewal; at_risk and risk_over: grace, billing, '
    'price, intent; trial_started: its outcome: converted, '
    'voluntary, billing, other; trial_lost: the same; refund: full, prorated, seats';
