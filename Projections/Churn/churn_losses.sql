-- What the read model "churn" answers about losses by cause and about refunds; the conventions are
-- those of churn_views.sql and churn_money_views.sql.

set local role :"projector";

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
    moment as (
        select s.month, s.day, t.*
        from span s
        cross join lateral (
            select
                m.kind, m.cause, m.currency,
                m.confidence = 'clock' as is_clock,
                m.price_influenced,
                m.extended,
                count(*) as moments,
                sum(m.tenure_days) as tenure_days,
                sum(m.mrr_delta) as delta
            from read_model.moments(churn_by_cause.environment, churn_by_cause.as_of) m
            where m.kind in ('access_churn', 'lapsed_unconfirmed', 'final_churn')
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
            group by 1, 2, 3, 4, 5, 6
        ) t
        union all
        select
            s.month, s.day, m.kind, m.cause, m.currency, m.confidence = 'clock',
            m.price_influenced, m.extended, m.weight, m.tenure_days, m.mrr_delta
        from read_model.succession_moments(
            churn_by_cause.environment, churn_by_cause.as_of) m
        join span s on m.effective_at >= s.starts and m.effective_at < s.ends
        where m.kind in ('access_churn', 'lapsed_unconfirmed', 'final_churn')
    ),
    total as (
        select
            m.month, m.day, m.currency,
            case when m.kind = 'lapsed_unconfirmed' then m.kind else m.cause end as cause,
            coalesce(sum(m.moments) filter (where m.kind <> 'final_churn'), 0) as access_churn,
            coalesce(sum(m.moments) filter (where m.kind = 'final_churn' and not m.is_clock), 0)
                as final,
            coalesce(sum(m.moments) filter (where m.kind = 'final_churn' and m.is_clock), 0)
                as final_clock,
            coalesce(sum(m.moments) filter (
                where m.kind <> 'final_churn' and m.price_influenced), 0) as influenced,
            coalesce(sum(m.moments) filter (where m.kind <> 'final_churn' and m.extended), 0)
                as extended,
            sum(m.tenure_days) filter (where m.kind <> 'final_churn') as tenure_days,
            sum(m.delta) as delta
        from moment m
        group by 1, 2, 3, 4
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
    having (sum(t.access_churn), sum(t.final), sum(t.final_clock)) <> (0, 0, 0)
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
language sql stable parallel safe
-- Compiling the plan takes longer than running it, and so does handing rows over between processes.
set jit = off set max_parallel_workers_per_gather = 0 as $$
    with months as materialized (
        select *
        from read_model.calendar_months(
            refund_rate.from_date, refund_rate.to_date, refund_rate.zone)
    ),
    edge as materialized (
        select array_agg(starts order by starts) || max(ends) as edges,
            min(starts) as first_start, max(ends) as last_end,
            min(starts) - interval '1 microsecond' as before,
            least(max(ends) - interval '1 microsecond', refund_rate.as_of) as last
        from months
    ),
    -- The instants of a row rise, so those of the months are found by halving. Long rows are in no
    -- index that covers them, so that the others can be.
    paid as (
        select
            unnest(m.charged_at[
                width_bucket((select before from edge), m.charged_at) + 1 :
                width_bucket((select last from edge), m.charged_at)
            ]) as at,
            m.product_id, m.currency, m.amount_milliunits as amount
        from read_model.moments(refund_rate.environment, refund_rate.as_of) m
        where m.kind = 'charge' and cardinality(m.charged_at) <= 100
            and m.effective_at < (select last_end from edge)
            -- The last of the equal charges.
            and m.related_at >= (select first_start from edge)
        union all
        select
            unnest(m.charged_at[
                width_bucket((select before from edge), m.charged_at) + 1 :
                width_bucket((select last from edge), m.charged_at)
            ]),
            m.product_id, m.currency, m.amount_milliunits
        from read_model.moments(refund_rate.environment, refund_rate.as_of) m
        where m.kind = 'charge' and cardinality(m.charged_at) > 100
            and m.effective_at < (select last_end from edge)
            and m.related_at >= (select first_start from edge)
    ),
    charge as materialized (
        select
            width_bucket(p.at, (select edges from edge)) as number,
            p.product_id,
            p.currency,
            case when refund_rate.target_currency is not null
                then (p.at at time zone refund_rate.zone)::date
            end as day,
            count(*) as moments,
            sum(p.amount) as amount
        from paid p
        group by 1, 2, 3, 4
    ),
    refund as (
        select p.part, p.at, m.product_id, m.currency, p.sign * m.amount_milliunits as amount
        from read_model.moments(refund_rate.environment, refund_rate.as_of) m
        cross join lateral (values
            ('of_charges', m.related_at,
                case when m.kind = 'refund' then 1 else -1 end),
            (m.kind, m.effective_at, 1)
        ) as p (part, at, sign)
        where m.kind in ('refund', 'refund_reversed')
            -- A refund never comes before its charge.
            and m.effective_at >= (select first_start from edge)
    ),
    total as (
        select c.number, 'charge' as part, c.product_id, c.currency, c.day, c.moments, c.amount
        from charge c
        join months n on n.number = c.number
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
