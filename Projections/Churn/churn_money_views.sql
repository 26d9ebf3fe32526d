-- What the read model "churn" answers about money, in milliunits. Amounts of two currencies are
-- never added: each row is of one currency. With target_currency every amount is first converted
-- by the rate of its day in the zone (ledger.fx_rate), and a missing rate is an error, never a gap.

set local role :"projector";

-- Where no target is named, everything stays as it is.
create or replace function read_model.rate_to(
    from_currency text, target_currency text, day date
) returns numeric
language sql stable parallel safe as $$
    select case
        when target_currency is null then 1
        else ledger.fx_rate_at(from_currency, target_currency, day)
    end
$$;

-- The monthly value, for each month, product and currency:
--   mrr_end = mrr_start + mrr_new + mrr_reactivation + mrr_expansion + mrr_contraction + mrr_churn
--     + mrr_lapsed_unconfirmed + mrr_correction + mrr_currency + mrr_fx
-- Every movement is signed. mrr_fx is what only the exchange rates did: levels are converted by the
-- rate of the month's first day and of the day after its last, movements by that of their own day.
create or replace function read_model.mrr_monthly(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now(),
    target_currency text default null
) returns table (
    month date,
    product_id text,
    currency text,
    mrr_start numeric,
    mrr_new numeric,
    mrr_reactivation numeric,
    mrr_expansion numeric,
    mrr_contraction numeric,
    mrr_churn numeric,
    mrr_lapsed_unconfirmed numeric,
    mrr_correction numeric,
    mrr_currency numeric,
    mrr_fx numeric,
    mrr_end numeric,
    gross_mrr_churn_rate numeric,
    net_mrr_churn_rate numeric,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select
            c.*,
            -- A month that is not over ends, for now, at as_of.
            case when c.ends <= mrr_monthly.as_of then (c.month + interval '1 month')::date
                else (mrr_monthly.as_of at time zone mrr_monthly.zone)::date
            end as end_day
        from read_model.calendar_months(
            mrr_monthly.from_date, mrr_monthly.to_date, mrr_monthly.zone) c
        where c.starts <= mrr_monthly.as_of
    ),
    -- One range of the index for each month and one for all the time before; with rates, for each
    -- day of the months, since a movement is converted by the rate of its day.
    span as (
        select 0 as number, null::date as day, '-infinity'::timestamptz as starts,
            min(n.starts) as ends
        from months n
        union all
        select n.number, null, n.starts, n.ends
        from months n
        where mrr_monthly.target_currency is null
        union all
        select
            n.number, d::date, d at time zone mrr_monthly.zone,
            (d + interval '1 day') at time zone mrr_monthly.zone
        from months n
        cross join lateral generate_series(
            n.month::timestamp, n.month + interval '1 month' - interval '1 day',
            interval '1 day'
        ) as d
        where mrr_monthly.target_currency is not null
    ),
    total as materialized (
        select s.number, s.day, t.*
        from span s
        cross join lateral (
            select
                coalesce(m.product_id, '') as product_id,
                coalesce(m.currency, '') as currency,
                m.mrr_movement as movement,
                sum(m.mrr_delta) as delta
            from read_model.lifecycle_moment m
            where m.generation
                    = (select generation from read_model.current where projection = 'churn')
                and m.mrr_delta <> 0
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
                and m.effective_at <= mrr_monthly.as_of
                and m.app_id = any (array(
                    select a.app_id from ledger.app a
                    where a.environment = mrr_monthly.environment))
            group by m.product_id, m.currency, m.mrr_movement
        ) t
    ),
    flow as (
        select p.number, p.product_id, p.currency, sum(p.delta) as delta
        from (
            select t.number, t.product_id, t.currency, t.delta from total t
            union all
            select n.number, k.product_id, k.currency, 0
            from months n
            cross join (select distinct t.product_id, t.currency from total t) k
        ) p
        group by p.number, p.product_id, p.currency
    ),
    level as (
        select
            f.number, f.product_id, f.currency,
            coalesce(sum(f.delta) over earlier, 0) as before,
            coalesce(sum(f.delta) over earlier, 0) + f.delta as after
        from flow f
        window earlier as (
            partition by f.product_id, f.currency order by f.number
            rows between unbounded preceding and 1 preceding
        )
    ),
    part as (
        select
            l.number, l.product_id,
            coalesce(mrr_monthly.target_currency, l.currency) as currency,
            case when l.before = 0 then 0 else l.before * read_model.rate_to(
                nullif(l.currency, ''), mrr_monthly.target_currency, n.month) end as starting,
            case when l.after = 0 then 0 else l.after * read_model.rate_to(
                nullif(l.currency, ''), mrr_monthly.target_currency, n.end_day) end as ending,
            null::text as movement,
            0::numeric as delta
        from level l
        join months n on n.number = l.number
        union all
        select
            t.number, t.product_id,
            coalesce(mrr_monthly.target_currency, t.currency),
            0, 0, t.movement,
            t.delta * read_model.rate_to(
                nullif(t.currency, ''), mrr_monthly.target_currency, t.day)
        from total t
        where t.number > 0
    ),
    summed as (
        select
            p.number, p.product_id, p.currency,
            round(sum(p.starting)) as starting,
            round(sum(p.ending)) as ending,
            coalesce(round(sum(p.delta) filter (where p.movement = 'new')), 0) as new,
            coalesce(round(sum(p.delta) filter (where p.movement = 'reactivation')), 0)
                as reactivation,
            coalesce(round(sum(p.delta) filter (where p.movement = 'expansion')), 0)
                as expansion,
            coalesce(round(sum(p.delta) filter (where p.movement = 'contraction')), 0)
                as contraction,
            coalesce(round(sum(p.delta) filter (where p.movement = 'churn')), 0) as churn,
            coalesce(round(sum(p.delta) filter (where p.movement = 'lapse')), 0) as lapse,
            coalesce(round(sum(p.delta) filter (where p.movement = 'correction')), 0)
                as correction,
            coalesce(round(sum(p.delta) filter (where p.movement = 'currency')), 0)
                as currency_change,
            count(p.movement) as movements
        from part p
        group by p.number, p.product_id, p.currency
    )
    select
        n.month,
        nullif(s.product_id, ''),
        nullif(s.currency, ''),
        s.starting,
        s.new,
        s.reactivation,
        s.expansion,
        s.contraction,
        s.churn,
        s.lapse,
        s.correction,
        s.currency_change,
        s.ending - s.starting - s.new - s.reactivation - s.expansion - s.contraction - s.churn
            - s.lapse - s.correction - s.currency_change,
        s.ending,
        round(-(s.churn + s.contraction) / nullif(s.starting, 0), 6),
        round(
            -(s.churn + s.contraction + s.expansion + s.reactivation) / nullif(s.starting, 0), 6),
        read_model.known_to_position()
    from summed s
    join months n on n.number = s.number
    where s.starting <> 0 or s.ending <> 0 or s.movements > 0
    order by n.month, s.product_id, s.currency
$$;

comment on function read_model.mrr_monthly is
        'The monthly value at the start and the end of each month, and what moved it, signed. '
        'gross_mrr_churn_rate = -(mrr_churn + mrr_contraction) / mrr_start; net also adds '
        'mrr_expansion and mrr_reactivation. mrr_fx is 0 without target_currency.';

create or replace function read_model.churn_by_cause(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now(),
    target_currency text default null
) returns table (
    month date,
    cause text,
    currency text,
    access_churn bigint,
    final_churn bigint,
    final_unconfirmed bigint,
    price_influenced bigint,
    extended bigint,
    tenure_days_mean numeric,
    mrr_lost numeric,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            churn_by_cause.from_date, churn_by_cause.to_date, churn_by_cause.zone)
    ),
    span as (
        select n.month, null::date as day, n.starts, n.ends
        from months n
        where churn_by_cause.target_currency is null
        union all
        select
            n.month, d::date, d at time zone churn_by_cause.zone,
            (d + interval '1 day') at time zone churn_by_cause.zone
        from months n
        cross join lateral generate_series(
            n.month::timestamp, n.month + interval '1 month' - interval '1 day',
            interval '1 day'
        ) as d
        where churn_by_cause.target_currency is not null
    ),
    total as (
        select s.month, s.day, t.*
        from span s
        cross join lateral (
            select
                case when m.kind = 'lapsed_unconfirmed' then m.kind else m.cause end as cause,
                m.currency,
                count(*) filter (where m.active_delta <> 0) as access_churn,
                count(*) filter (where m.kind = 'final_churn' and m.confidence <> 'clock')
                    as final,
                count(*) filter (where m.kind = 'final_churn' and m.confidence = 'clock')
                    as final_clock,
                count(*) filter (where m.active_delta <> 0 and m.price_influenced)
                    as influenced,
                count(*) filter (where m.active_delta <> 0 and m.extended) as extended,
                sum(m.tenure_days) filter (where m.active_delta <> 0) as tenure_days,
                sum(m.mrr_delta) as delta
            from read_model.lifecycle_moment m
            where m.generation
                    = (select generation from read_model.current where projection = 'churn')
                and m.kind in ('access_churn', 'lapsed_unconfirmed', 'final_churn')
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
                and m.effective_at <= churn_by_cause.as_of
                and m.app_id = any (array(
                    select a.app_id from ledger.app a
                    where a.environment = churn_by_cause.environment))
            group by m.kind, m.cause, m.currency
        ) t
    )
    select
        t.month,
        t.cause,
        coalesce(churn_by_cause.target_currency, t.currency) as currency,
        sum(t.access_churn)::bigint,
        sum(t.final)::bigint,
        sum(t.final_clock)::bigint,
        sum(t.influenced)::bigint,
        sum(t.extended)::bigint,
        round(sum(t.tenure_days) / nullif(sum(t.access_churn), 0), 1),
        round(-sum(case when t.delta = 0 then 0 else t.delta * read_model.rate_to(
            t.currency, churn_by_cause.target_currency, t.day) end)),
        read_model.known_to_position()
    from total t
    group by t.month, t.cause, 3
    order by t.month, t.cause, 3
$$;

comment on function read_model.churn_by_cause is
        'Why subscribers were lost, by month and currency: access_churn by when access ended, '
        'final_churn by when it was over for good. A lapse that only the clock knows is the cause '
        'lapsed_unconfirmed.';

create or replace function read_model.refund_rate(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production',
    as_of timestamptz default now(),
    target_currency text default null
) returns table (
    month date,
    product_id text,
    currency text,
    charges bigint,
    charged numeric,
    refunded_of_charges numeric,
    refund_rate_by_purchase numeric,
    refunds bigint,
    refunded numeric,
    reversed numeric,
    refund_rate_by_refund numeric,
    known_to_position bigint
)
language sql stable parallel safe as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            refund_rate.from_date, refund_rate.to_date, refund_rate.zone)
    ),
    edge as materialized (
        select array_agg(starts order by starts) || max(ends) as edges,
            min(starts) as first_start, max(ends) as last_end
        from months
    ),
    charge as (
        select
            width_bucket(c.at, (select edges from edge)) as number,
            m.product_id,
            m.currency,
            case when refund_rate.target_currency is not null
                then (c.at at time zone refund_rate.zone)::date
            end as day,
            count(*) as moments,
            sum(m.amount_milliunits) as amount
        from read_model.lifecycle_moment m
        cross join lateral unnest(m.charged_at) as c (at)
        where m.generation
                = (select generation from read_model.current where projection = 'churn')
            and m.kind = 'charge'
            and m.effective_at < (select last_end from edge)
            -- The last of the equal charges.
            and m.related_at >= (select first_start from edge)
            and m.app_id = any (array(
                select a.app_id from ledger.app a
                where a.environment = refund_rate.environment))
            and c.at >= (select first_start from edge)
            and c.at < (select last_end from edge)
            and c.at <= refund_rate.as_of
        group by 1, 2, 3, 4
    ),
    refund as (
        select p.part, p.at, m.product_id, m.currency, p.sign * m.amount_milliunits as amount
        from read_model.lifecycle_moment m
        cross join lateral (values
            ('of_charges', m.related_at,
                case when m.kind = 'refund' then 1 else -1 end),
            (m.kind, m.effective_at, 1)
        ) as p (part, at, sign)
        where m.generation
                = (select generation from read_model.current where projection = 'churn')
            and m.kind in ('refund', 'refund_reversed')
            -- A refund never comes before its charge.
            and m.effective_at >= (select first_start from edge)
            and m.effective_at <= refund_rate.as_of
            and m.app_id = any (array(
                select a.app_id from ledger.app a
                where a.environment = refund_rate.environment))
    ),
    total as (
        select c.number, 'charge' as part, c.product_id, c.currency, c.day, c.moments, c.amount
        from charge c
        union all
        select
            width_bucket(r.at, (select edges from edge)),
            r.part, r.product_id, r.currency,
            case when refund_rate.target_currency is not null
                then (r.at at time zone refund_rate.zone)::date
            end,
            count(*),
            sum(r.amount)
        from refund r
        where r.at >= (select first_start from edge) and r.at < (select last_end from edge)
        group by 1, 2, 3, 4, 5
    ),
    converted as (
        select
            t.number, t.part, t.product_id,
            coalesce(refund_rate.target_currency, t.currency) as currency,
            t.moments,
            case when t.amount = 0 then 0 else t.amount * read_model.rate_to(
                t.currency, refund_rate.target_currency, t.day) end as amount
        from total t
    ),
    summed as (
        select
            c.number, c.product_id, c.currency,
            coalesce(sum(c.moments) filter (where c.part = 'charge'), 0) as charges,
            coalesce(round(sum(c.amount) filter (where c.part = 'charge')), 0) as charged,
            coalesce(round(sum(c.amount) filter (where c.part = 'of_charges')), 0)
                as of_charges,
            coalesce(sum(c.moments) filter (where c.part = 'refund'), 0) as refunds,
            coalesce(round(sum(c.amount) filter (where c.part = 'refund')), 0) as refunded,
            coalesce(round(sum(c.amount) filter (where c.part = 'refund_reversed')), 0)
                as reversed
        from converted c
        group by c.number, c.product_id, c.currency
    )
    select
        n.month,
        s.product_id,
        s.currency,
        s.charges::bigint,
        s.charged,
        s.of_charges,
        round(s.of_charges / nullif(s.charged, 0), 6),
        s.refunds::bigint,
        s.refunded,
        s.reversed,
        round((s.refunded - s.reversed) / nullif(s.charged, 0), 6),
        read_model.known_to_position()
    from summed s
    join months n on n.number = s.number
    order by n.month, s.product_id, s.currency
$$;

comment on function read_model.refund_rate is
        'What was charged and paid back. By purchase: refunds (less those undone) of the charges '
        'of the month / what they were charged; it restates old months. By refund: paid back in '
        'the month (less undone) / charged in the month.';
