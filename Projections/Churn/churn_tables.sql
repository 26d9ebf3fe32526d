-- The table of the read model "churn", partitioned by generation: a rebuild fills partitions
-- beside the live ones.

set local role :"projector";

create table read_model.lifecycle_moment (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    effective_at timestamptz not null,
    sequence integer not null,
    kind text collate "C" not null,
    cause text collate "C",
    active_delta integer not null,
    product_id text collate "C",
    plan_period text collate "C",
    currency text collate "C",
    storefront text collate "C",
    offer text collate "C",
    price_milliunits bigint,
    quantity bigint,
    mrr_milliunits bigint,
    mrr_delta bigint not null,
    mrr_movement text collate "C",
    amount_milliunits bigint,
    confidence text collate "C" not null,
    spell integer,
    paid_periods integer,
    tenure_days integer,
    active_since timestamptz,
    held_since timestamptz,
    related_at timestamptz,
    price_influenced boolean not null,
    extended boolean not null,
    charged_at timestamptz[],
    paid_ordinals integer[],
    positions bigint[] not null,
    standard_mrr_milliunits bigint,
    standard_mrr_delta bigint not null,
    risk_delta integer not null,
    paid_amounts bigint[],
    succeeds text collate "C",
    constraint lifecycle_moment_active_delta_check check (active_delta between -1 and 1),
    constraint lifecycle_moment_risk_delta_check check (risk_delta between -1 and 1),
    primary key (stream, app_id, effective_at, sequence, generation)
) partition by list (generation);

comment on table read_model.lifecycle_moment is
        'One row for each moment of a subscription''s life that bears on staying or on money; '
        'equal charges in a row share one. Rows whose effective_at lies ahead are predictions.';

-- Each question is answered from one of these indexes alone, without the rows: balances, losses and
-- refunds by kind, charges, cohorts. An entry may have 2,704 bytes, so the few rows with more than a
-- hundred instants or amounts are in none of the last two and are read as rows.
create index lifecycle_moment_by_balance
    on read_model.lifecycle_moment (effective_at) include (
        generation, app_id, kind, cause, product_id, currency, active_delta, mrr_delta,
        mrr_movement, active_since, held_since, standard_mrr_delta, risk_delta
    ) where active_delta <> 0 or mrr_delta <> 0 or standard_mrr_delta <> 0 or risk_delta <> 0;
create index lifecycle_moment_by_kind
    on read_model.lifecycle_moment (kind, effective_at) include (
        generation, app_id, cause, product_id, currency, active_delta, mrr_delta, confidence,
        price_influenced, extended, tenure_days, related_at
    ) where kind not in ('charge', 'cohort');
create index lifecycle_moment_by_charge
    on read_model.lifecycle_moment (related_at) include (
        effective_at, generation, app_id, amount_milliunits, product_id, currency, charged_at
    ) where kind = 'charge' and cardinality(charged_at) <= 100;
create index lifecycle_moment_by_cohort
    on read_model.lifecycle_moment (effective_at) include (
        generation, app_id, plan_period, product_id, currency, paid_ordinals, paid_amounts
    ) where kind = 'cohort' and cardinality(paid_ordinals) <= 100;
create index lifecycle_moment_by_length
    on read_model.lifecycle_moment (kind, effective_at)
    where cardinality(charged_at) > 100 or cardinality(paid_ordinals) > 100;
create index lifecycle_moment_by_predecessor
    on read_model.lifecycle_moment (succeeds, app_id) where succeeds is not null;

-- The first generation. Version 0 belongs to no program: the one that folds first takes it over.
create table read_model.lifecycle_moment_g1
    partition of read_model.lifecycle_moment for values in (1);
alter table read_model.lifecycle_moment_g1 alter column generation set default 1;

insert into read_model.generation
    (projection, generation, version, decoder, state, from_position, finished_at)
values ('churn', 1, 0, 0, 'live', 0, now());

insert into read_model.current (projection, generation, version, decoder)
values ('churn', 1, 0, 0);

do $do$
declare
    line text;
begin
    foreach line in array array[
        'generation: which build of the read model the row belongs to',
        'app_id: the row of ledger.app: bundle id and environment',
        'stream: Apple''s originalTransactionId',
        'effective_at: when it took effect, or will if no news comes',
        'sequence: tells moments of one instant apart, from 0',
        'kind: new_paid, trial_started, trial_converted, trial_lost, reactivated, recovered, '
        'access_churn, final_churn, lapsed_unconfirmed, switched_out, switched_in, price_changed, '
        'churn_corrected, at_risk, risk_over, charge, refund, refund_reversed or cohort',
        'cause: churn: voluntary, involuntary, price, product, refund, other; recovered: '
        'in_grace, after_grace, after_expiry; reactivated: returning, new_run, win_back; '
        'churn_corrected: refund_reversed, late_renewal; at_risk and risk_over: grace, billing, '
        'price, intent; trial_started: its outcome: converted, '
        'voluntary, billing, other; trial_lost: the same; refund: full, prorated, seats',
        'active_delta: what it does to the number of paying subscribers',
        'product_id: the product held from then on, or until then for a loss',
        'plan_period: its nominal length: 1w, 1m, 2m, 3m, 6m or 1y',
        'currency: ISO 4217; amounts of two currencies are never added',
        'storefront: ISO 3166-1 alpha-3',
        'offer: standard, trial, intro, promotional, offer_code, win_back or unknown',
        'price_milliunits: the price of one; what you configured, before tax and commission',
        'quantity: how many; seats of all charges of the period',
        'mrr_milliunits: what is held, a month: price x quantity / months of the plan; a week x '
        '487/112 (30.4375 days / 7), rounded once to a milliunit, half away from 0',
        'mrr_delta: what it does to the monthly value',
        'mrr_movement: new, reactivation, expansion, contraction, churn, lapse, correction or currency',
        'amount_milliunits: price x quantity of each charge; refunds: x percentage, rounded once',
        'confidence: confirmed, provisional, estimated, or clock where no news came',
        'spell: which run of paying, from 1; a recovery goes on with the run, a reactivation begins one',
        'paid_periods: how many periods of the run were paid before',
        'tenure_days: whole days since the run began',
        'active_since: since when the subscriber paid without a gap',
        'held_since: since when for this product in this currency',
        'related_at: trial_started: when its outcome came; trial_*: the trial''s start; charge: '
        'the last of the equal charges; refunds: the charge; gains: the loss that is made good; '
        'losses: the run''s start',
        'price_influenced: lost for a price increase, or after one was put to the customer in that period',
        'extended: whether an extension had lengthened the period',
        'charged_at: the instants of equal charges; one row for a run of renewals',
        'paid_ordinals: cohort: which periods from the first (0) on were paid and not refunded',
        'positions: the positions of the events that decided it',
        'standard_mrr_milliunits: mrr_milliunits without offers: by the price of the next charge',
        'standard_mrr_delta: what it does to the monthly value without offers',
        'risk_delta: what it does to the number of those who pay and may leave',
        'paid_amounts: cohort: what each of paid_ordinals brought, less seats that were paid back',
        'succeeds: first payment of what a migration made: the subscription that it was before'
    ] loop
        execute format(
        'comment on column read_model.lifecycle_moment.%I is %L',
            split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
        );
    end loop;
end
$do$;
