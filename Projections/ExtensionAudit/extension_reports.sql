-- What the read model "extension_audit" adds up to. Instants, zones and environments are arguments.

set local role :"projector";

create or replace view read_model.mass_extension as
select
    m.request_identifier,
    a.environment,
    a.bundle_id,
    m.product_id,
    m.storefronts,
    m.days as days_requested,
    q.reason_code as apple_reason_code,
    q.ticket as ticket_id,
    q.justification,
    q.operator_authenticated as requested_by,
    q.operator_claimed,
    q.on_behalf_of,
    d.operator_authenticated as approved_by,
    m.at as requested_at,
    m.submitted_at,
    m.outcome,
    m.complete,
    m.complete_date,
    m.summary_at,
    m.asked_at as status_asked_at,
    m.succeeded_count,
    m.failed_count,
    c.confirmed as own_succeeded_count,
    c.failed as own_failed_count,
    m.complete and m.succeeded_count is distinct from c.confirmed as succeeded_differs,
    m.complete and m.failed_count is distinct from c.failed as failed_differs,
    r.positions as evidence_positions,
    m.summary_position,
    m.app_id,
    (select count(*) from ledger.extension_step s
        where s.stream = m.stream and s.app_id = m.app_id
            and s.kind = 'mass_extension_approval_refused') as refused_approvals
from read_model.mass_request m
join ledger.app a on a.app_id = m.app_id
join ledger.extension_request q
    on q.stream = m.stream and q.app_id = m.app_id
    and q.request_identifier = m.request_identifier
join read_model.extension_record_live r
    on r.stream = m.stream and r.app_id = m.app_id
    and r.request_identifier = m.request_identifier
left join ledger.extension_step d
    on d.stream = r.stream and d.app_id = r.app_id and d.position = r.approved_position
cross join lateral (
    select
        count(*) filter (where x.outcome = 'external') as confirmed,
        count(*) filter (where x.outcome = 'refused_by_apple') as failed
    from read_model.extension_record_explained x
    where x.app_id = m.app_id and x.mass_request_identifier = m.request_identifier
        -- Family members and seats follow the purchaser's; Apple extends and counts that one.
        and x.ownership not in ('FAMILY_SHARED', 'ASSIGNED')
) c;

comment on view read_model.mass_extension is
    'Each mass extension with Apple''s totals beside those of the notices that came.';

-- Apple allows two in 365 days, once worded by customer and once by subscription. Both are
-- counted, in 365 times 24 hours, and the stricter decides.
create or replace function read_model.extension_budget_at(instant timestamptz)
returns table (
    original_transaction_id text,
    environment text,
    bundle_id text,
    owner uuid,
    used_subscription bigint,
    used_owner bigint,
    used bigint,
    remaining bigint,
    more_from timestamptz,
    app_id integer
)
language sql stable parallel safe as $$
    with counted as (
        select r.app_id, r.stream, r.owner, r.counts_from
        from read_model.extension_record_live r
        where r.counts_from > $1 - interval '8760 hours' and r.counts_from <= $1
    ),
    known as (
        select c.app_id, c.stream from counted c
        union
        select o.app_id, o.stream
        from read_model.subscription_owner_live o
        where o.valid_from <= $1 and $1 < o.valid_until
            and exists (
                select from counted c
                where c.owner = o.app_account_token and c.app_id = o.app_id
            )
    ),
    owned as (
        select k.app_id, k.stream, o.app_account_token as owner
        from known k
        left join read_model.subscription_owner_live o
            on o.stream = k.stream and o.app_id = k.app_id
            and o.valid_from <= $1 and $1 < o.valid_until
    )
    select
        k.stream,
        a.environment,
        a.bundle_id,
        k.owner,
        u.used_subscription,
        u.used_owner,
        greatest(u.used_subscription, u.used_owner),
        greatest(0, 2 - greatest(u.used_subscription, u.used_owner)),
        case
            when greatest(u.used_subscription, u.used_owner) >= 2
            then greatest(u.subscription_free, u.owner_free)
        end,
        k.app_id
    from owned k
    join ledger.app a on a.app_id = k.app_id
    cross join lateral (
        select
            count(*) filter (where c.stream = k.stream) as used_subscription,
            count(*) filter (where c.owner = k.owner) as used_owner,
            (array_agg(c.counts_from order by c.counts_from desc)
                filter (where c.stream = k.stream))[2] + interval '8760 hours'
                as subscription_free,
            (array_agg(c.counts_from order by c.counts_from desc)
                filter (where c.owner = k.owner))[2] + interval '8760 hours' as owner_free
        from counted c
        where c.app_id = k.app_id and (c.stream = k.stream or c.owner = k.owner)
    ) u
$$;

comment on function read_model.extension_budget_at(timestamptz) is
    'How many extensions count at an instant, for each subscription and for its owner; those without '
    'any are left out.';

create or replace view read_model.extension_budget as
select * from read_model.extension_budget_at(now());

comment on view read_model.extension_budget is
    'How many extensions count now, for each subscription and for its owner.';

create or replace function read_model.extension_monthly(
    from_date date,
    to_date date,
    zone text default 'UTC',
    environment text default 'Production'
)
returns table (
    month date,
    apple_reason text,
    operator text,
    requests bigint,
    granted bigint,
    days_granted numeric,
    refused_locally bigint,
    refused_by_apple bigint,
    unsettled bigint,
    external bigint
)
language sql stable parallel safe as $$
    select
        date_trunc('month', x.at at time zone $3)::date,
        x.apple_reason,
        x.requested_by,
        count(*) filter (where x.requested_at is not null),
        count(*) filter (where x.outcome in ('accepted', 'confirmed', 'contradicted', 'external')),
        coalesce(
            sum(x.days_effective)
                filter (where x.outcome in ('accepted', 'confirmed', 'contradicted', 'external')),
            0
        ),
        count(*) filter (where x.outcome = 'refused_locally'),
        count(*) filter (where x.outcome = 'refused_by_apple'),
        count(*) filter (where x.outcome in ('requested', 'unknown')),
        count(*) filter (where x.outcome = 'external')
    from read_model.extension_audit x
    where x.environment = $4
        and x.at >= $1::timestamp at time zone $3 and x.at < $2::timestamp at time zone $3
    group by 1, 2, 3
    order by 1, 2, 3
$$;

comment on function read_model.extension_monthly is
    'Requests, grants and days by month, reason and operator; to_date is the first day after.';

-- Names, tickets and Apple's words are for the auditor. The record without them is not.
revoke select on
    read_model.extension_audit, read_model.mass_extension, read_model.unattributed_extension,
    read_model.mass_request, read_model.extension_record_explained
    from :"reader";
revoke execute on function read_model.extension_monthly from public;
grant execute on function read_model.extension_monthly to :"auditor";
