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

comment on function read_model.rate_to is
    'The rate of a day to a currency; 1 where none is named, an error where there is no rate.';

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
    known_to_position bigint,
    standard_mrr_start numeric,
    standard_mrr_end numeric
)
language sql stable parallel safe
-- Compiling the plan takes longer than running it.
set jit = off as $$
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
    -- One range of the index for each month; with rates, for each
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
    within as materialized (
        select s.number, s.day, t.*
        from span s
        cross join lateral (
            select
                coalesce(m.product_id, '') as product_id,
                coalesce(m.currency, '') as currency,
                m.mrr_movement as movement,
                sum(m.mrr_delta) as delta,
                sum(m.standard_mrr_delta) as standard
            from read_model.moments(mrr_monthly.environment, mrr_monthly.as_of) m
            where (m.mrr_delta <> 0 or m.standard_mrr_delta <> 0)
                and m.effective_at >= s.starts
                and m.effective_at < s.ends
            group by m.product_id, m.currency, m.mrr_movement
        ) t
        where s.number > 0
    ),
    -- The level before the months, from the shorter side (level_edge).
    edge as materialized (
        select * from read_model.level_edge(
            (select min(n.starts) from months n), (select max(n.ends) from months n),
            mrr_monthly.as_of)
    ),
    level_before as (
        select
            coalesce(m.product_id, '') as product_id,
            coalesce(m.currency, '') as currency,
            sum(m.mrr_delta) as delta,
            sum(m.standard_mrr_delta) as standard
        from read_model.moments(mrr_monthly.environment, 'infinity') m
        where not (select e.is_behind from edge e)
            and (m.mrr_delta <> 0 or m.standard_mrr_delta <> 0)
            and m.effective_at < (select e.starts from edge e)
        group by m.product_id, m.currency
        union all
        select
            coalesce(m.product_id, ''),
            coalesce(m.currency, ''),
            -sum(m.mrr_delta),
            -sum(m.standard_mrr_delta)
        from read_model.moments(mrr_monthly.environment, 'infinity') m
        where (select e.is_behind from edge e)
            and (m.mrr_delta <> 0 or m.standard_mrr_delta <> 0)
            and m.effective_at >= (select e.behind from edge e)
        group by m.product_id, m.currency
        union all
        select w.product_id, w.currency, -w.delta, -w.standard
        from within w
        where (select e.is_behind from edge e)
    ),
    total as materialized (
        select
            0 as number, null::date as day, l.product_id, l.currency, null::text as movement,
            l.delta, l.standard
        from level_before l
        union all
        select * from within
        union all
        select
            s.number, s.day, coalesce(m.product_id, ''), coalesce(m.currency, ''),
            m.mrr_movement, sum(m.mrr_delta), sum(m.standard_mrr_delta)
        from read_model.succession_moments(mrr_monthly.environment, mrr_monthly.as_of) m
        join span s on m.effective_at >= s.starts and m.effective_at < s.ends
        group by s.number, s.day, m.product_id, m.currency, m.mrr_movement
    ),
    flow as (
        select
            p.number, p.product_id, p.currency, sum(p.delta) as delta,
            sum(p.standard) as standard
        from (
            select t.number, t.product_id, t.currency, t.delta, t.standard from total t
            union all
            select n.number, k.product_id, k.currency, 0, 0
            from months n
            cross join (select distinct t.product_id, t.currency from total t) k
        ) p
        group by p.number, p.product_id, p.currency
    ),
    level as (
        select
            f.number, f.product_id, f.currency,
            coalesce(sum(f.delta) over earlier, 0) as before,
            coalesce(sum(f.delta) over earlier, 0) + f.delta as after,
            coalesce(sum(f.standard) over earlier, 0) as standard_before,
            coalesce(sum(f.standard) over earlier, 0) + f.standard as standard_after
        from flow f
        window earlier as (
            partition by f.product_id, f.currency order by f.number
            rows between unbounded preceding and 1 preceding
        )
    ),
    -- What is worth nothing needs no rate.
    part as (
        select
            l.number, l.product_id,
            coalesce(mrr_monthly.target_currency, l.currency) as currency,
            l.before * r.starting as starting,
            l.after * r.ending as ending,
            l.standard_before * r.starting as standard_starting,
            l.standard_after * r.ending as standard_ending,
            null::text as movement,
            0::numeric as delta
        from level l
        join months n on n.number = l.number
        cross join lateral (
            select
                case when l.before = 0 and l.standard_before = 0 then 0
                    else read_model.rate_to(
                        nullif(l.currency, ''), mrr_monthly.target_currency, n.month)
                end as starting,
                case when l.after = 0 and l.standard_after = 0 then 0
                    else read_model.rate_to(
                        nullif(l.currency, ''), mrr_monthly.target_currency, n.end_day)
                end as ending
        ) r
        union all
        select
            t.number, t.product_id,
            coalesce(mrr_monthly.target_currency, t.currency),
            0, 0, 0, 0, t.movement,
            t.delta * read_model.rate_to(
                nullif(t.currency, ''), mrr_monthly.target_currency, t.day)
        from total t
        where t.number > 0 and t.movement is not null and t.delta <> 0
    ),
    summed as (
        select
            p.number, p.product_id, p.currency,
            round(sum(p.starting)) as starting,
            round(sum(p.ending)) as ending,
            round(sum(p.standard_starting)) as standard_starting,
            round(sum(p.standard_ending)) as standard_ending,
            coalesce(round(sum(p.delta) filter (where p.movement = 'new')), 0)
                as new,
            coalesce(round(sum(p.delta) filter (where p.movement = 'reactivation')), 0)
                as reactivation,
            coalesce(round(sum(p.delta) filter (where p.movement = 'expansion')), 0)
                as expansion,
            coalesce(round(sum(p.delta) filter (where p.movement = 'contraction')), 0)
                as contraction,
            coalesce(round(sum(p.delta) filter (where p.movement = 'churn')), 0)
                as churn,
            coalesce(round(sum(p.delta) filter (where p.movement = 'lapse')), 0)
                as lapse,
            coalesce(round(sum(p.delta) filter (where p.movement = 'correction')), 0)
                as correction,
            coalesce(round(sum(p.delta) filter (where p.movement = 'currency')), 0)
                as currency_change
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
        read_model.known_to_position(),
        s.standard_starting,
        s.standard_ending
    from summed s
    join months n on n.number = s.number
    where (s.starting, s.ending, s.new, s.reactivation, s.expansion, s.contraction, s.churn,
            s.lapse, s.correction, s.currency_change, s.standard_starting, s.standard_ending)
        <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    order by n.month, s.product_id, s.currency
$$;

comment on function read_model.mrr_monthly is
        'The monthly value at the start and the end of each month, and what moved it, signed. '
        'gross_mrr_churn_rate = -(mrr_churn + mrr_contraction) / mrr_start; net also adds '
        'mrr_expansion and mrr_reactivation. mrr_fx is 0 without target_currency. standard_mrr_* '
        'leave offers out: they take the price of the next charge.';
