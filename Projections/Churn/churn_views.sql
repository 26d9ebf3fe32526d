-- What the read model "churn" answers about subscribers. Every function ignores what takes effect
-- after as_of. Months are the calendar months of `zone` from the one of from_date to the one of the
-- day before to_date, and a month is half-open. Numbers of subscribers; money is in the next file.
-- Columns are only added at the end.

set local role :"projector";

create or replace function read_model.calendar_months(from_date date, to_date date, zone text)
returns table (number integer, month date, starts timestamptz, ends timestamptz)
language sql stable parallel safe rows 24
-- Nothing here depends on the session's zone; and a setting keeps the planner from opening the
-- function up, whose 24 rows it would take for 1000.
set timezone = 'UTC' as $$
    select
        row_number() over (order by m)::integer,
        m::date,
        m at time zone zone,
        (m + interval '1 month') at time zone zone
    from generate_series(
        date_trunc('month', from_date::timestamp), (to_date - 1)::timestamp, interval '1 month'
    ) as m
$$;

comment on function read_model.calendar_months is
    'The calendar months of a zone that hold a day of [from_date, to_date), with their instants.';

-- The level at an instant is the sum of all deltas before it. Whoever comes is foretold to go, and
-- the timeline of a subscription ends in a state in which nothing is held: so the deltas of each one
-- add up to nothing, and the level is as well what those from the instant on take away. The shorter
-- side of the two is read; of two equal ones the newer mostly holds more.
create or replace function read_model.level_edge(
    starts timestamptz, ends timestamptz, as_of timestamptz
) returns table (starts timestamptz, behind timestamptz, is_behind boolean)
language sql stable parallel safe rows 1
set jit = off as $$
    select
        level_edge.starts,
        greatest(
            level_edge.starts,
            least(level_edge.ends, level_edge.as_of + interval '1 microsecond')
        ),
        coalesce(
            1.5 * (extract(epoch from level_edge.as_of) - extract(epoch from level_edge.starts))
                < extract(epoch from level_edge.starts) - (
                    select extract(epoch from min(m.effective_at))
                    from read_model.lifecycle_moment m
                    where m.active_delta <> 0 or m.mrr_delta <> 0 or m.standard_mrr_delta <> 0
                        or m.risk_delta <> 0
                ),
            false
        )
$$;

comment on function read_model.level_edge is
    'Where the level before some months is read from: all the time before them (starts), or what '
    'lies behind them (behind) and themselves.';

create or replace view read_model.lifecycle as
select
    m.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
    m.effective_at,
    m.kind,
    m.cause,
    m.active_delta,
    m.product_id,
    m.plan_period,
    m.currency,
    m.storefront,
    m.offer,
    m.price_milliunits,
    m.quantity,
    m.mrr_milliunits,
    m.mrr_delta,
    m.mrr_movement,
    m.amount_milliunits,
    m.confidence,
    m.spell,
    m.paid_periods,
    m.tenure_days,
    m.active_since,
    m.held_since,
    m.related_at,
    m.price_influenced,
    m.extended,
    m.charged_at,
    m.paid_ordinals,
    m.positions,
    s.known_to_position,
    m.sequence,
    m.app_id,
    m.standard_mrr_milliunits,
    m.standard_mrr_delta,
    m.risk_delta,
    m.paid_amounts,
    m.succeeds
from read_model.lifecycle_moment m
join ledger.app a
    on a.app_id = m.app_id
left join read_model.subscription s
    on s.stream = m.stream and s.app_id = m.app_id
    and s.generation = (select generation from read_model.current where projection = 'entitlement')
where m.generation = (select generation from read_model.current where projection = 'churn');

comment on view read_model.lifecycle is
    'The moments of every subscription in every environment, those that lie ahead included. Each '
    'stream is by itself: the functions make one life of a migrated subscription and the one before.';

do $do$
declare
    line text;
begin
    -- A column means what the table's of that name does.
    for line in
        select format(
            'comment on column read_model.lifecycle.%I is %L',
            v.attname, coalesce(col_description(t.attrelid, t.attnum), w.meaning)
        )
        from pg_attribute v
        left join pg_attribute t
            on t.attrelid = 'read_model.lifecycle_moment'::regclass and t.attname = v.attname
        left join (values
            ('original_transaction_id', 'Apple''s id of the subscription'),
            ('environment', 'Production or Sandbox, as Apple signed it'),
            ('bundle_id', 'the app'),
            ('known_to_position', 'the highest position among the subscription''s events')
        ) w (name, meaning)
            on w.name = v.attname
        where v.attrelid = 'read_model.lifecycle'::regclass and v.attnum > 0
    loop
        execute line;
    end loop;
end
$do$;

-- The balance, for each month, product and currency:
--   active_end = active_start + new_paid + trial_converted + reactivated + recovered + switched_in
--     - churn_voluntary - churn_involuntary - churn_price - churn_product - churn_refund
--     - churn_other - lapsed_unconfirmed - switched_out + corrections
create or replace function read_model.churn_monthly(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now()
) returns table (
    month date,
    product_id text,
    currency text,
    active_start bigint,
    new_paid bigint,
    trial_converted bigint,
    reactivated bigint,
    recovered bigint,
    switched_in bigint,
    churn_voluntary bigint,
    churn_involuntary bigint,
    churn_price bigint,
    churn_product bigint,
    churn_refund bigint,
    churn_other bigint,
    lapsed_unconfirmed bigint,
    switched_out bigint,
    corrections bigint,
    active_end bigint,
    access_churn bigint,
    churned_of_start bigint,
    churned_of_start_any bigint,
    gross_churn_rate numeric,
    net_churn_rate numeric,
    reactivated_returning bigint,
    reactivated_new_run bigint,
    reactivated_win_back bigint,
    known_to_position bigint,
    at_risk_intent bigint,
    at_risk_billing bigint,
    at_risk_grace bigint,
    at_risk_price bigint
)
language sql stable parallel safe
-- Compiling the plan takes longer than running it.
set jit = off as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            churn_monthly.from_date, churn_monthly.to_date, churn_monthly.zone)
    ),
    span as (
        select 0 as number, '-infinity'::timestamptz as starts, min(n.starts) as ends
        from months n
        union all
        select n.number, n.starts, n.ends from months n
    ),
    -- One range of the index for each month.
    within as materialized (
        select s.number, t.*
        from months s
        cross join lateral (
            select
                coalesce(m.product_id, '') as product_id,
                coalesce(m.currency, '') as currency,
                m.kind,
                m.cause,
                count(*) as moments,
                sum(m.active_delta) as delta,
                sum(m.risk_delta) as risk,
                count(*) filter (where m.held_since < s.starts) as of_start,
                count(*) filter (where m.active_since < s.starts) as of_start_any
            from read_model.moments(churn_monthly.environment, churn_monthly.as_of) m
            where (m.active_delta <> 0 or m.risk_delta <> 0)
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
            group by m.product_id, m.currency, m.kind, m.cause
        ) t
    ),
    -- And one for the level before them (level_edge).
    edge as materialized (
        select * from read_model.level_edge(
            (select min(n.starts) from months n), (select max(n.ends) from months n),
            churn_monthly.as_of)
    ),
    level as (
        select
            coalesce(m.product_id, '') as product_id,
            coalesce(m.currency, '') as currency,
            case when m.risk_delta <> 0 then m.cause end as cause,
            sum(m.active_delta) as delta,
            sum(m.risk_delta) as risk
        from read_model.moments(churn_monthly.environment, 'infinity') m
        where not (select e.is_behind from edge e)
            and (m.active_delta <> 0 or m.risk_delta <> 0)
            and m.effective_at < (select e.starts from edge e)
        group by m.product_id, m.currency, 3
        union all
        select
            coalesce(m.product_id, ''),
            coalesce(m.currency, ''),
            case when m.risk_delta <> 0 then m.cause end,
            -sum(m.active_delta),
            -sum(m.risk_delta)
        from read_model.moments(churn_monthly.environment, 'infinity') m
        where (select e.is_behind from edge e)
            and (m.active_delta <> 0 or m.risk_delta <> 0)
            and m.effective_at >= (select e.behind from edge e)
        group by m.product_id, m.currency, 3
        union all
        select
            w.product_id, w.currency,
            case when w.kind in ('at_risk', 'risk_over') then w.cause end,
            -w.delta, -w.risk
        from within w
        where (select e.is_behind from edge e)
    ),
    total as materialized (
        select
            0 as number, l.product_id, l.currency, 'at_risk' as kind, l.cause,
            0::bigint as moments, l.delta, l.risk, 0::bigint as of_start,
            0::bigint as of_start_any
        from level l
        union all
        select * from within
        union all
        select
            s.number,
            coalesce(m.product_id, ''),
            coalesce(m.currency, ''),
            m.kind,
            m.cause,
            sum(m.weight),
            sum(m.active_delta),
            sum(m.risk_delta),
            coalesce(sum(m.weight) filter (where m.held_since < s.starts), 0),
            coalesce(sum(m.weight) filter (where m.active_since < s.starts), 0)
        from read_model.succession_moments(churn_monthly.environment, churn_monthly.as_of) m
        join span s on m.effective_at >= s.starts and m.effective_at < s.ends
        group by s.number, m.product_id, m.currency, m.kind, m.cause
    ),
    padded as (
        select * from total
        union all
        select n.number, k.product_id, k.currency, null, null, 0, 0, 0, 0, 0
        from months n
        cross join (select distinct t.product_id, t.currency from total t) k
    ),
    named as (
        select
            p.*,
            case p.kind
                when 'access_churn' then 'churn_' || p.cause
                when 'reactivated' then 'reactivated_' || p.cause
                when 'at_risk' then 'risk_' || p.cause
                when 'risk_over' then 'risk_' || p.cause
                else p.kind
            end as name
        from padded p
    ),
    flow as (
        select
            p.number,
            p.product_id,
            p.currency,
            sum(p.delta) as delta,
            coalesce(sum(p.moments) filter (where p.name = 'new_paid'), 0) as new_paid,
            coalesce(sum(p.moments) filter (where p.name = 'trial_converted'), 0) as trial_converted,
            coalesce(sum(p.moments) filter (where p.name = 'recovered'), 0) as recovered,
            coalesce(sum(p.moments) filter (where p.name = 'switched_in'), 0) as switched_in,
            coalesce(sum(p.moments) filter (where p.name = 'switched_out'), 0) as switched_out,
            coalesce(sum(p.moments) filter (where p.name = 'lapsed_unconfirmed'), 0) as lapsed_unconfirmed,
            coalesce(sum(p.moments) filter (where p.name = 'churn_corrected'), 0) as corrections,
            coalesce(sum(p.moments) filter (where p.name = 'churn_voluntary'), 0) as voluntary,
            coalesce(sum(p.moments) filter (where p.name = 'churn_involuntary'), 0) as involuntary,
            coalesce(sum(p.moments) filter (where p.name = 'churn_price'), 0) as price,
            coalesce(sum(p.moments) filter (where p.name = 'churn_product'), 0) as product,
            coalesce(sum(p.moments) filter (where p.name = 'churn_refund'), 0) as refund,
            coalesce(sum(p.moments) filter (where p.name = 'churn_other'), 0) as other,
            coalesce(sum(p.moments) filter (where p.name = 'reactivated_returning'), 0) as returning_soon,
            coalesce(sum(p.moments) filter (where p.name = 'reactivated_new_run'), 0) as new_run,
            coalesce(sum(p.moments) filter (where p.name = 'reactivated_win_back'), 0) as win_back,
            coalesce(sum(p.of_start) filter (where p.kind = 'access_churn'), 0) as of_start,
            coalesce(sum(p.of_start_any) filter (where p.kind = 'access_churn'), 0)
                as of_start_any,
            coalesce(sum(p.risk) filter (where p.name = 'risk_intent'), 0) as risk_intent,
            coalesce(sum(p.risk) filter (where p.name = 'risk_billing'), 0) as risk_billing,
            coalesce(sum(p.risk) filter (where p.name = 'risk_grace'), 0) as risk_grace,
            coalesce(sum(p.risk) filter (where p.name = 'risk_price'), 0) as risk_price
        from named p
        group by p.number, p.product_id, p.currency
    ),
    balance as (
        select
            f.*,
            coalesce(sum(f.delta) over earlier, 0) as active_start,
            sum(f.risk_intent) over upto as at_risk_intent,
            sum(f.risk_billing) over upto as at_risk_billing,
            sum(f.risk_grace) over upto as at_risk_grace,
            sum(f.risk_price) over upto as at_risk_price,
            f.returning_soon + f.new_run + f.win_back as reactivated,
            f.voluntary + f.involuntary + f.price + f.product + f.refund + f.other
                as access_churn
        from flow f
        window
            earlier as (
                partition by f.product_id, f.currency order by f.number
                rows between unbounded preceding and 1 preceding
            ),
            upto as (partition by f.product_id, f.currency order by f.number)
    )
    select
        n.month,
        nullif(f.product_id, ''),
        nullif(f.currency, ''),
        f.active_start::bigint,
        f.new_paid::bigint,
        f.trial_converted::bigint,
        f.reactivated::bigint,
        f.recovered::bigint,
        f.switched_in::bigint,
        f.voluntary::bigint,
        f.involuntary::bigint,
        f.price::bigint,
        f.product::bigint,
        f.refund::bigint,
        f.other::bigint,
        f.lapsed_unconfirmed::bigint,
        f.switched_out::bigint,
        f.corrections::bigint,
        (f.active_start + f.delta)::bigint,
        f.access_churn::bigint,
        f.of_start::bigint,
        f.of_start_any::bigint,
        round(f.of_start / nullif(f.active_start, 0), 6),
        round(
            (f.access_churn - f.reactivated - f.recovered - f.corrections)
                / nullif(f.active_start, 0),
            6
        ),
        f.returning_soon::bigint,
        f.new_run::bigint,
        f.win_back::bigint,
        read_model.known_to_position(),
        f.at_risk_intent::bigint,
        f.at_risk_billing::bigint,
        f.at_risk_grace::bigint,
        f.at_risk_price::bigint
    from balance f
    join months n on n.number = f.number
    where n.starts <= churn_monthly.as_of
        and (f.active_start, f.delta, f.new_paid, f.trial_converted, f.reactivated, f.recovered,
            f.switched_in, f.switched_out, f.access_churn, f.lapsed_unconfirmed, f.corrections)
            <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    order by n.month, f.product_id, f.currency
$$;

comment on function read_model.churn_monthly is
        'Subscribers who pay at the start and the end of each month, and every way of coming and '
        'going between. gross_churn_rate = churned_of_start / active_start; net_churn_rate = '
        '(access_churn - reactivated - recovered - corrections) / active_start. at_risk_* are those '
        'of active_end who may leave, each by one reason.';
