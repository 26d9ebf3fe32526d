-- A migration gives a subscription another id. For the questions of "churn" both are one life: the
-- old one's lapse is no loss and the new one's first payment no gain. Each stays a stream of its own
-- in the rows; here are the rows that make one life of them, with a weight of 1 or -1, to be added to
-- the rows as they are. Where nothing was migrated there are none, and nothing is slower.

set local role :"projector";

create or replace function read_model.known_to_position() returns bigint
language sql stable parallel safe as $$
    select least(
        (select position from ledger.head),
        (select min(position) - 1 from ledger.mark)
    )
$$;

comment on function read_model.known_to_position is
    'Every event up to this position is in the live read models.';

-- Simple enough that the planner opens it up and reads an index of the table.
create or replace function read_model.moments(of_environment text, as_of timestamptz)
returns setof read_model.lifecycle_moment
language sql stable parallel safe as $$
    select m.*
    from read_model.lifecycle_moment m
    where m.generation = (select generation from read_model.current where projection = 'churn')
        and m.effective_at <= $2
        and m.app_id = any (array(select a.app_id from ledger.app a where a.environment = $1))
$$;

comment on function read_model.moments is
    'The live moments of one environment that took effect by as_of, each stream by itself.';

-- One row for each subscription that goes on with another from its first payment on. Several that
-- name the same one before them are one migration and others that began anew.
create or replace function read_model.successions(of_environment text, as_of timestamptz)
returns table (
    app_id integer,
    stream text,
    before text,
    root text,
    at timestamptz,
    ends timestamptz,
    gain read_model.lifecycle_moment,
    last read_model.lifecycle_moment,
    was_active boolean,
    is_same boolean,
    active_since timestamptz,
    held_since timestamptz,
    tenure_days integer
)
language sql stable parallel safe as $$
    with recursive gain as (
        select distinct on (m.app_id, m.succeeds) m as moment
        from read_model.moments($1, $2) m
        where m.succeeds is not null
        order by m.app_id, m.succeeds, m.effective_at, m.stream
    ),
    pair as materialized (
        select
            (g.moment).app_id,
            (g.moment).stream,
            (g.moment).succeeds as before,
            (g.moment).effective_at as at,
            g.moment,
            p.moment as last,
            (p.moment).active_delta >= 0 and (p.moment).kind not in ('trial_started', 'trial_lost')
                as was_active,
            ((p.moment).product_id, (p.moment).currency)
                is not distinct from ((g.moment).product_id, (g.moment).currency) as is_same
        from gain g
        cross join lateral (
            select m as moment
            from read_model.moments($1, $2) m
            where m.app_id = (g.moment).app_id
                and m.stream = (g.moment).succeeds
                and m.effective_at < (g.moment).effective_at
                and (m.active_delta <> 0 or m.mrr_delta <> 0
                    or m.kind in ('trial_started', 'trial_lost'))
            order by m.effective_at desc, m.sequence desc
            limit 1
        ) p
    ),
    chain as (
        select
            p.*,
            p.before as root,
            case when p.was_active then (p.last).active_since else p.at end as active_since,
            case when p.was_active and p.is_same then (p.last).held_since else p.at end
                as held_since,
            (p.last).tenure_days + extract(days from p.at - (p.last).effective_at)::integer
                as tenure_days
        from pair p
        where not exists (
            select from pair o where o.stream = p.before and o.app_id = p.app_id
        )
        union all
        select
            p.*,
            c.root,
            case
                when not p.was_active then p.at
                when (p.last).active_since = c.at then c.active_since
                else (p.last).active_since
            end,
            case
                when not p.was_active or not p.is_same then p.at
                when (p.last).held_since = c.at then c.held_since
                else (p.last).held_since
            end,
            (p.last).tenure_days + extract(days from p.at - (p.last).effective_at)::integer
                + case when (p.last).spell = 1 then c.tenure_days else 0 end
        from chain c
        join pair p on p.before = c.stream and p.app_id = c.app_id and p.at > c.at
    )
    select
        c.app_id, c.stream, c.before, c.root, c.at, coalesce(n.at, 'infinity'), c.moment, c.last,
        c.was_active, c.is_same, c.active_since, c.held_since, coalesce(c.tenure_days, 0)
    from chain c
    left join chain n on n.before = c.stream and n.app_id = c.app_id
$$;

comment on function read_model.successions is
    'The subscriptions that go on with another since a migration, and what that one was then.';

create or replace function read_model.succession_moments(of_environment text, as_of timestamptz)
returns table (
    effective_at timestamptz,
    kind text,
    cause text,
    product_id text,
    currency text,
    weight integer,
    active_delta integer,
    mrr_delta bigint,
    standard_mrr_delta bigint,
    risk_delta integer,
    mrr_movement text,
    confidence text,
    price_influenced boolean,
    extended boolean,
    tenure_days integer,
    active_since timestamptz,
    held_since timestamptz,
    related_at timestamptz
)
language sql stable parallel safe as $$
    with succession as materialized (
        select * from read_model.successions($1, $2)
    ),
    removed as (
        -- What the old one seemed to do after the new one had begun.
        select m as moment
        from succession s
        cross join lateral (
            select m
            from read_model.moments($1, $2) m
            where m.app_id = s.app_id and m.stream = s.before and m.effective_at >= s.at
                and m.kind not in ('charge', 'refund', 'refund_reversed', 'cohort')
        ) m
        union all
        select s.gain from succession s
    ),
    -- The new one's first run began with the old one's.
    lost as (
        select s.active_since, s.held_since, s.tenure_days, s.at, m as moment
        from succession s
        cross join lateral (
            select m
            from read_model.moments($1, $2) m
            where m.app_id = s.app_id and m.stream = s.stream and m.spell = 1
                and m.kind in ('access_churn', 'lapsed_unconfirmed')
                and m.effective_at < s.ends
        ) m
        where s.was_active
    ),
    regained as (
        select
            s.*,
            case
                when (s.last).kind = 'lapsed_unconfirmed' then 'churn_corrected'
                when (s.last).kind = 'access_churn' and (s.last).cause = 'involuntary'
                    and not exists (
                        select from read_model.moments($1, s.at) f
                        where f.app_id = s.app_id and f.stream = s.before
                            and f.kind = 'final_churn' and f.effective_at < s.at
                            and f.related_at = (s.last).effective_at
                    ) then 'recovered'
                when (s.last).kind = 'trial_started' then 'trial_converted'
                when (s.last).kind = 'trial_lost' then (s.gain).kind
                else 'reactivated'
            end as kind
        from succession s
        where not s.was_active
    )
    select
        (r.moment).effective_at, (r.moment).kind, (r.moment).cause, (r.moment).product_id,
        (r.moment).currency, -1, -(r.moment).active_delta, -(r.moment).mrr_delta,
        -(r.moment).standard_mrr_delta, -(r.moment).risk_delta, (r.moment).mrr_movement,
        (r.moment).confidence, (r.moment).price_influenced, (r.moment).extended,
        -(r.moment).tenure_days, (r.moment).active_since, (r.moment).held_since,
        (r.moment).related_at
    from removed r
    union all
    select
        (l.moment).effective_at, (l.moment).kind, (l.moment).cause, (l.moment).product_id,
        (l.moment).currency, v.weight, 0, 0, 0, 0, (l.moment).mrr_movement,
        (l.moment).confidence, (l.moment).price_influenced, (l.moment).extended, v.tenure_days,
        v.active_since, v.held_since, (l.moment).related_at
    from lost l
    cross join lateral (values
        (-1, -(l.moment).tenure_days, (l.moment).active_since, (l.moment).held_since),
        (
            1,
            (l.moment).tenure_days + l.tenure_days,
            case when (l.moment).active_since = l.at then l.active_since
                else (l.moment).active_since end,
            case when (l.moment).held_since = l.at then l.held_since
                else (l.moment).held_since end
        )
    ) v (weight, tenure_days, active_since, held_since)
    union all
    -- Somebody who paid goes on, with the same or by a switch.
    select
        s.at, v.kind, null, v.product_id, v.currency, 1, v.active_delta, v.mrr_delta,
        v.standard_mrr_delta, 0,
        case
            when (s.last).currency is distinct from (s.gain).currency then 'currency'
            when (s.gain).mrr_milliunits < (s.last).mrr_milliunits then 'contraction'
            when (s.gain).mrr_milliunits > (s.last).mrr_milliunits or not s.is_same
                then 'expansion'
        end,
        (s.gain).confidence, false, false, null, s.active_since, s.held_since, null
    from succession s
    cross join lateral (values
        (
            s.is_same, 'price_changed', (s.gain).product_id, (s.gain).currency, 0,
            (s.gain).mrr_milliunits - (s.last).mrr_milliunits,
            (s.gain).standard_mrr_milliunits - (s.last).standard_mrr_milliunits
        ),
        (
            not s.is_same, 'switched_out', (s.last).product_id, (s.last).currency, -1,
            -(s.last).mrr_milliunits, -(s.last).standard_mrr_milliunits
        ),
        (
            not s.is_same, 'switched_in', (s.gain).product_id, (s.gain).currency, 1,
            (s.gain).mrr_milliunits, (s.gain).standard_mrr_milliunits
        )
    ) v (holds, kind, product_id, currency, active_delta, mrr_delta, standard_mrr_delta)
    where s.was_active and v.holds
    union all
    select
        r.at, r.kind,
        case r.kind
            when 'churn_corrected' then 'late_renewal'
            when 'recovered' then 'after_grace'
            when 'reactivated' then
                case
                    when (r.gain).offer = 'win_back' then 'win_back'
                    when r.at <= (r.last).effective_at + interval '60 days' then 'returning'
                    else 'new_run'
                end
        end,
        (r.gain).product_id, (r.gain).currency, 1, 1, (r.gain).mrr_delta,
        (r.gain).standard_mrr_delta, 0,
        case
            when r.kind = 'churn_corrected' then 'correction'
            when r.kind in ('reactivated', 'recovered') then 'reactivation'
            else (r.gain).mrr_movement
        end,
        (r.gain).confidence, false, false, null, r.at, r.at, (r.last).effective_at
    from regained r
    union all
    -- A trial that the migration led to its first payment.
    select
        (r.last).effective_at, 'trial_started', v.cause, (r.last).product_id, (r.last).currency,
        v.weight, 0, 0, 0, 0, null, v.confidence, false, false, null, null, null, v.related_at
    from regained r
    cross join lateral (values
        (-1, (r.last).cause, (r.last).confidence, (r.last).related_at),
        (1, 'converted', 'confirmed', r.at)
    ) v (weight, cause, confidence, related_at)
    where r.kind = 'trial_converted'
    union all
    -- What put the old one at risk is over with it.
    select
        s.at, 'risk_over', m.cause, m.product_id, m.currency, 1, 0, 0, 0, -m.risk, null,
        'confirmed', false, false, null, null, null, null
    from succession s
    cross join lateral (
        select m.cause, m.product_id, m.currency, sum(m.risk_delta)::integer as risk
        from read_model.moments($1, $2) m
        where m.app_id = s.app_id and m.stream = s.before and m.effective_at < s.at
            and m.risk_delta <> 0
        group by m.cause, m.product_id, m.currency
        having sum(m.risk_delta) <> 0
    ) m
$$;

comment on function read_model.succession_moments is
    'What to add to the moments so that a migrated subscription is one life with the one before it.';

create or replace function read_model.plan_days(plan_period text) returns numeric
language sql immutable parallel safe as $$
    select case plan_period
        when '1w' then 7
        when '2m' then 60.875
        when '3m' then 91.3125
        when '6m' then 182.625
        when '1y' then 365.25
        else 30.4375
    end
$$;

comment on function read_model.plan_days is 'The mean length of a plan in days.';

-- A cohort begins with the first payment of a life. The periods that its later subscriptions paid
-- for are counted from there, by the length of the first one's plan.
create or replace function read_model.succession_cohorts(of_environment text, as_of timestamptz)
returns table (
    effective_at timestamptz,
    product_id text,
    plan_period text,
    currency text,
    paid_ordinals integer[],
    paid_amounts bigint[],
    weight integer
)
language sql stable parallel safe as $$
    with member as materialized (
        select s.root, m as moment
        from (
            select distinct s.app_id, s.root, v.stream
            from read_model.successions($1, $2) s
            cross join lateral (values (s.root), (s.stream)) v (stream)
        ) s
        cross join lateral (
            select m
            from read_model.moments($1, $2) m
            where m.app_id = s.app_id and m.stream = s.stream and m.kind = 'cohort'
        ) m
    ),
    first as (
        select distinct on ((m.moment).app_id, m.root) m.root, m.moment
        from member m
        order by (m.moment).app_id, m.root, (m.moment).effective_at, (m.moment).stream
    ),
    paid as (
        select f.root, (f.moment).app_id, o.ordinal, sum(o.amount)::bigint as amount
        from first f
        join member m on m.root = f.root and (m.moment).app_id = (f.moment).app_id
        cross join lateral unnest((m.moment).paid_ordinals, (m.moment).paid_amounts)
            as p (ordinal, amount)
        cross join lateral (
            select
                round((extract(epoch from (m.moment).effective_at - (f.moment).effective_at) / 86400
                    + p.ordinal * read_model.plan_days((m.moment).plan_period))
                    / read_model.plan_days((f.moment).plan_period))::integer as begins,
                round((extract(epoch from (m.moment).effective_at - (f.moment).effective_at) / 86400
                    + (p.ordinal + 1) * read_model.plan_days((m.moment).plan_period))
                    / read_model.plan_days((f.moment).plan_period))::integer - 1 as ends
        ) r
        cross join lateral (
            select g as ordinal,
                case when g = r.begins and (m.moment).currency is not distinct
                    from (f.moment).currency then p.amount else 0 end as amount
            from generate_series(r.begins, greatest(r.begins, r.ends)) g
        ) o
        group by 1, 2, 3
    )
    select
        (m.moment).effective_at, (m.moment).product_id, (m.moment).plan_period,
        (m.moment).currency, (m.moment).paid_ordinals, (m.moment).paid_amounts, -1
    from member m
    union all
    select
        (f.moment).effective_at, (f.moment).product_id, (f.moment).plan_period,
        (f.moment).currency, p.ordinals, p.amounts, 1
    from first f
    join (
        select
            p.root, p.app_id, array_agg(p.ordinal order by p.ordinal) as ordinals,
            array_agg(p.amount order by p.ordinal) as amounts
        from paid p
        group by p.root, p.app_id
    ) p on p.root = f.root and p.app_id = (f.moment).app_id
$$;

comment on function read_model.succession_cohorts is
    'What to add to the cohorts so that a migrated subscription is in the one of its first payment.';
