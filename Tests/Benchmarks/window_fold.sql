-- The timeline of every subscription, computed from ledger.fact by the database alone.
--
-- A second oracle beside the simulator's evaluator: written from the lifecycle reference 3.2 and
-- DESIGN section 5, sharing nothing with the product's fold. It leaves its answer in the temporary
-- table window_fold (app_id, stream, valid_from, valid_until, state, cause, product_id), where
-- neighbours of equal state, cause and product are one row. It knows no configuration: grace that
-- was announced without a date is not estimated (its announced end tells, if anything), and the
-- leeway is the default one.

set local work_mem = '256MB';
set local jit = off;

-- The news of each subscription in the order in which Apple signed them.
create temporary table news on commit drop as
select app_id, stream, coalesce(signed_at, fact_at) as signed_at, notification_type as type, subtype,
    transaction_id, transaction_signed_date, product_id, purchase_date, expires_date,
    revocation_date, revocation_type, in_app_ownership_type as ownership,
    coalesce(is_upgraded, false) as is_upgraded, transaction_reason as reason, additional_reason,
    total_billing_periods is not null or commitment_expires_date is not null
        or coalesce(billing_plan_type = 'MONTHLY', false) as is_commitment,
    renewal_signed_date is not null as has_renewal, auto_renew_status, expiration_intent,
    coalesce(is_in_billing_retry_period, false) as is_retrying, grace_period_expires_date,
    row_number() over (
        partition by app_id, stream order by coalesce(signed_at, fact_at), fact_at, position) as n
from ledger.fact
where fact_at is not null;
create index on news (app_id, stream, n);

-- Its periods: of each transaction the last word on it, and what its versions say together.
create temporary table period on commit drop as
select *,
    case when is_short then interval '10 minutes' else interval '2 hours' end as leeway,
    case
        when is_short then interval '10 minutes'
        when is_commitment then interval '90 days'
        else interval '60 days'
    end as retry,
    row_number() over (
        partition by app_id, stream order by purchase_date, expires_date, first_n) as k
from (
    select app_id, stream, transaction_id, product_id, purchase_date, expires_date,
        revocation_date, revocation_type, ownership, reason, additional_reason, is_commitment,
        expires_date - purchase_date <= interval '24 hours' as is_short,
        min(n) over versions as first_n,
        min(transaction_signed_date) over versions as first_signed,
        bool_or(type = 'DID_RENEW' and subtype = 'BILLING_RECOVERY') over versions as is_recovery,
        min(transaction_signed_date) filter (where is_upgraded) over versions as upgraded_at,
        row_number() over (
            partition by app_id, stream, transaction_id
            order by transaction_signed_date desc, signed_at desc, n desc) as version
    from news
    where purchase_date < expires_date
    window versions as (
        partition by app_id, stream, transaction_id
        rows between unbounded preceding and unbounded following)
) as versions
where version = 1;
create index on period (app_id, stream, k);

-- Which purchase, made within a period, took its place. Renewals and more seats never do.
create temporary table successor on commit drop as
select old.app_id, old.stream, old.k, new.purchase_date as at, new.revocation_date as revoked_at
from period as old
join period as new using (app_id, stream)
where new.purchase_date > old.purchase_date and new.purchase_date < old.expires_date
    and new.reason = 'PURCHASE' and new.additional_reason is null;
create index on successor (app_id, stream, k);

-- A renewal that was charged within a day before it begins, and whose plan was changed before that.
alter table period add column is_early boolean not null default false;
update period as p
set is_early = true
where p.reason = 'RENEWAL' and p.additional_reason is null
    and p.purchase_date > p.first_signed
    and p.purchase_date - p.first_signed < interval '24 hours'
    and exists (
        select from period as new
        where (new.app_id, new.stream) = (p.app_id, p.stream)
            and new.purchase_date > p.first_signed and new.purchase_date < p.purchase_date
            and new.reason = 'PURCHASE' and new.additional_reason is null
            and new.revocation_date is null and new.product_id <> p.product_id);

-- When an upgrade that Apple itself names ended a period.
alter table period add column upgrade_date timestamptz;
update period as p
set upgrade_date = coalesce(
    (select min(s.at) from successor as s
        where (s.app_id, s.stream, s.k) = (p.app_id, p.stream, p.k)),
    p.upgraded_at)
where p.upgraded_at is not null;

-- Which period seats were added to; such a purchase is no period of its own.
alter table period add column base_k bigint;
update period as p
set base_k = (
    select max(base.k) from period as base
    where (base.app_id, base.stream) = (p.app_id, p.stream) and base.additional_reason is null
        and base.purchase_date <= p.purchase_date and p.purchase_date < base.expires_date)
where p.additional_reason is not null;

-- Most periods end by themselves and need no further look.
alter table period add column is_plain boolean;
update period as p
set is_plain = revocation_date is null and upgrade_date is null
    and not exists (
        select from successor as s where (s.app_id, s.stream, s.k) = (p.app_id, p.stream, p.k));
analyze news, period, successor;

-- Rule 1 needs to know who is live: not revoked, not upgraded, nor superseded. Only the revocation
-- of what took its place gives the time back.
create function pg_temp.is_live(p period, t timestamptz) returns boolean
    language sql stable as $$
    select coalesce(p.revocation_date > t, true) and coalesce(p.upgrade_date > t, true)
        and not exists (
            select from successor as s
            where (s.app_id, s.stream, s.k) = (p.app_id, p.stream, p.k) and s.at <= t
                and coalesce(s.revoked_at > t, true))
$$;

-- Every instant at which an answer can change.
create temporary table instant on commit drop as
select distinct app_id, stream, t
from (
    select app_id, stream, unnest(array[
        purchase_date, expires_date, expires_date + leeway, expires_date + retry,
        expires_date + interval '28 days', revocation_date, upgrade_date]) as t
    from period
    union all
    select app_id, stream, signed_at from news where type in ('EXPIRED', 'GRACE_PERIOD_EXPIRED')
    union all
    select app_id, stream, signed_at from news where has_renewal and expiration_intent is not null
    union all
    select app_id, stream, grace_period_expires_date from news
) as instants
where t is not null;

-- Of each instant: the period that covers it, the one that began last, the live one that ends
-- last, the next one, and hence which news tell of the gap.
create temporary table moment on commit drop as
select i.app_id, i.stream, i.t, cover.product_id as covering_product,
    latest.revocation_date <= i.t and not exists (
        -- With added seats it is revoked when each of its purchases is.
        select from period as part
        where (part.app_id, part.stream, part.base_k) = (i.app_id, i.stream, latest.k)
            and part.purchase_date <= i.t and coalesce(part.revocation_date > i.t, true)
    ) as is_revoked, latest.revocation_type, latest.ownership,
    latest.first_n as since_n, coalesce(following.first_n, 9223372036854775807) as before_n,
    coalesce(ended.expires_date, latest.expires_date) as ended_at,
    coalesce(ended.product_id, latest.product_id) as product_id,
    coalesce(ended.leeway, latest.leeway) as leeway, coalesce(ended.retry, latest.retry) as retry,
    coalesce(ended.is_commitment, latest.is_commitment) as is_commitment,
    latest.product_id as latest_product,
    coalesce(nearest.is_recovery, false) as next_is_recovery, nearest.purchase_date as next_at
from instant as i
cross join lateral (
    select * from period as p
    where (p.app_id, p.stream) = (i.app_id, i.stream) and p.purchase_date <= i.t
        and p.base_k is null and not p.is_early
    order by k desc limit 1
) as latest
left join lateral (
    select p.product_id from period as p
    where (p.app_id, p.stream) = (i.app_id, i.stream)
        and p.purchase_date <= i.t and i.t < p.expires_date and not p.is_early
        and (p.is_plain or pg_temp.is_live(p, i.t))
    order by k limit 1
) as cover on true
left join lateral (
    select p.* from period as p
    where (p.app_id, p.stream) = (i.app_id, i.stream) and p.purchase_date <= i.t
        and coalesce(latest.upgrade_date > i.t, true) and not p.is_early
        and (p.is_plain or pg_temp.is_live(p, i.t))
    order by p.expires_date desc, k limit 1
) as ended on true
left join lateral (
    select p.purchase_date, p.is_recovery from period as p
    where (p.app_id, p.stream) = (i.app_id, i.stream) and p.purchase_date > i.t and not p.is_early
        and (p.is_plain or pg_temp.is_live(p, p.purchase_date))
    order by k limit 1
) as nearest on true
left join lateral (
    -- Where the report of the next one was lost, that of any later one ends the news of the gap.
    select min(later.first_n) as first_n from period as later
    where (later.app_id, later.stream) = (i.app_id, i.stream)
        and later.purchase_date >= nearest.purchase_date
) as following on true;

-- What those news say: the newest renewal info and markers, none older than the period.
create temporary table evidence on commit drop as
select m.*, renewal.*, markers.*, at_end.auto_renew_status as auto_renew_at_end,
    -- A failure of which nothing told but what ended it: grace that was over, retry that was over, or
    -- a recovery that came while Apple may still try. It works from the end of the period on.
    case
        when markers.first_over_n is not null then m.since_n
        when lost.lost_n is not null then lost.lost_n
        when markers.is_retry_over
            or m.next_is_recovery and m.next_at <= m.ended_at + m.retry then m.since_n
    end as lost_n,
    coalesce(lost.lost_at, m.ended_at) as lost_at,
    coalesce(
        lost.lost_grace,
        case when markers.first_over_n is not null then least(
            markers.first_over_at,
            coalesce(markers.last_grace_date, m.ended_at + interval '28 days'))
        end) as lost_grace,
    coalesce(grace.grace_end, undated.grace_end) as grace_end
from moment as m
left join lateral (
    select n as renewal_n, auto_renew_status, expiration_intent, is_retrying,
        signed_at as renewal_at
    from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n >= m.since_n and n < m.before_n and has_renewal
    order by n desc limit 1
) as renewal on true
left join lateral (
    select auto_renew_status from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n >= m.since_n and n < m.before_n and has_renewal and signed_at < m.ended_at
    order by n desc limit 1
) as at_end on true
cross join lateral (
    select
        max(n) filter (where type = 'DID_FAIL_TO_RENEW') as failed_n,
        max(n) filter (where type = 'GRACE_PERIOD_EXPIRED' and signed_at <= m.t) as grace_over_n,
        max(n) filter (where type = 'GRACE_PERIOD_EXPIRED') as last_over_n,
        min(n) filter (where type = 'GRACE_PERIOD_EXPIRED') as first_over_n,
        (array_agg(signed_at order by n) filter (where type = 'GRACE_PERIOD_EXPIRED'))[1]
            as first_over_at,
        (array_agg(grace_period_expires_date order by n desc) filter (
            where grace_period_expires_date is not null))[1] as last_grace_date,
        coalesce(bool_or(type = 'EXPIRED' and subtype = 'BILLING_RETRY'), false) as is_retry_over,
        max(n) filter (where type = 'EXPIRED' and signed_at <= m.t) as expired_by_now_n,
        max(n) filter (where type = 'EXPIRED') as expired_n,
        (array_agg(subtype order by n desc) filter (where type = 'EXPIRED'))[1] as expired_subtype,
        (array_agg(subtype order by n desc) filter (where type = 'DID_FAIL_TO_RENEW'))[1]
            as failed_subtype
    from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n >= m.since_n and n < m.before_n
) as markers
cross join lateral (
    -- A failure that only renewal info told of; grace that was past when signed only persisted.
    select min(n) as lost_n, (array_agg(signed_at order by n))[1] as lost_at,
        (array_agg(grace_period_expires_date order by n desc) filter (
            where grace_period_expires_date > m.ended_at
                and grace_period_expires_date > signed_at))[1] as lost_grace
    from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n >= m.since_n and n < m.before_n and has_renewal and is_retrying
) as lost
left join lateral (
    select grace_period_expires_date as grace_end from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n >= markers.failed_n and n < m.before_n and grace_period_expires_date is not null
    order by n desc limit 1
) as grace on true
left join lateral (
    -- Grace without a date lasted until its end was announced.
    select least(signed_at, m.ended_at + interval '28 days') as grace_end from news
    where (news.app_id, news.stream) = (m.app_id, m.stream)
        and n > markers.failed_n and n < m.before_n and type = 'GRACE_PERIOD_EXPIRED'
        and markers.failed_subtype = 'GRACE_PERIOD'
    order by n limit 1
) as undated on true;

create temporary table answer on commit drop as
select app_id, stream, t,
    case
        when covering_product is not null then 'active'
        when is_revoked then 'revoked'
        when is_in_grace then 'grace_period'
        when is_failing and t < ended_at + retry then 'billing_retry'
        when expired_n is not null or expiration_intent is not null then 'expired'
        when auto_renew_status is distinct from 0 and t < ended_at + leeway
            and not was_failing then 'renewal_pending'
        else 'expired'
    end as state,
    case
        when covering_product is not null then null
        when is_revoked then case
            when revocation_type = 'REFUND_PRORATED' then 'refund_prorated'
            when revocation_type = 'FAMILY_REVOKE' then 'family_revoke'
            when revocation_type = 'ASSIGNMENT_REVOKE' then 'assignment_revoke'
            when ownership = 'FAMILY_SHARED' then 'family_revoke'
            else 'refund'
        end
        when is_in_grace or is_failing and t < ended_at + retry then null
        when expired_subtype is not null then case
            when expired_subtype in
                ('VOLUNTARY', 'BILLING_RETRY', 'PRICE_INCREASE', 'PRODUCT_NOT_FOR_SALE')
            then lower(expired_subtype)
            else 'other'
        end
        when expired_n is not null and expiration_intent is null then 'other'
        when expiration_intent is not null then
            coalesce((array['voluntary', 'billing_retry', 'price_increase',
                'product_not_for_sale'])[expiration_intent], 'other')
        when auto_renew_status is distinct from 0 and t < ended_at + leeway
            and not was_failing then null
        when was_failing then 'billing_retry'
        when auto_renew_at_end = 0 then 'voluntary'
        else 'presumed'
    end as cause,
    case
        when covering_product is not null then covering_product
        when is_revoked then latest_product
        else product_id
    end as product_id
from (
    select *,
        failed_n is not null or lost_n is not null as was_failing,
        coalesce(is_failing_by_notice or is_failing_by_renewal, false) as is_failing,
        not is_commitment and coalesce(
            is_failing_by_notice and failed_n > coalesce(grace_over_n, 0) and t < grace_end
            or is_failing_by_renewal and t < lost_grace
                and coalesce(grace_over_n < lost_n, true), false) as is_in_grace
    from (
        select *,
            failed_n > coalesce(expired_by_now_n, 0) as is_failing_by_notice,
            failed_n is null and lost_n > coalesce(expired_by_now_n, 0)
                -- Renewal info that told of the failure tells of its end too; what comes with the end
                -- of grace need not.
                and not (not is_retrying and expiration_intent is not null and renewal_at <= t
                    and renewal_at > lost_at and renewal_n is distinct from last_over_n)
                as is_failing_by_renewal
        from evidence
    ) as failing
) as judged;

create temporary table window_fold on commit drop as
select app_id, stream, t as valid_from,
    coalesce(lead(t) over subscription, 'infinity') as valid_until, state, cause, product_id
from (
    select *,
        lag((state, cause, product_id)) over subscription
            is not distinct from (state, cause, product_id) as is_same
    from answer
    window subscription as (partition by app_id, stream order by t)
) as answers
where not is_same
window subscription as (partition by app_id, stream order by t);
