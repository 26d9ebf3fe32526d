-- Entitlement per person. A person has subscriptions of one's own, by Apple's token or an
-- operator's link, and those that carry no token: what a migration made of an owned one, and what
-- the same customer of the app has by family, by an assigned seat, or bought outside the app.

set local role :"projector";

create index subscription_by_previous
    on read_model.subscription (previous_original_transaction_id)
    where previous_original_transaction_id is not null;
create index subscription_without_owner
    on read_model.subscription (app_id, stream) where app_account_token is null;

create or replace view read_model.subscription_live as
select * from read_model.subscription
where generation = (select generation from read_model.current where projection = 'entitlement');

comment on view read_model.subscription_live is
    'read_model.subscription without the generations that are not shown; every environment.';

create or replace view read_model.subscription_owner_live as
select * from read_model.subscription_owner
where generation = (select generation from read_model.current where projection = 'entitlement');

comment on view read_model.subscription_owner_live is
    'read_model.subscription_owner without the generations that are not shown; every environment.';

-- The subscriptions without an owner of their own that migrations join to an owned one, over any
-- number of steps. What an owned subscription became is the owner's; what it was made of too, unless
-- somebody else owns an older one, or another subscription that was made of it: nobody is let in on
-- a guess.
create or replace function read_model.unowned_aliases(
    of_app integer,
    of_stream text,
    of_owner uuid
) returns table (stream text)
language sql stable parallel safe rows 1 as $$
    with recursive later as (
        select s.stream
        from read_model.subscription_live s
        where s.previous_original_transaction_id = of_stream and s.app_id = of_app
            and not exists (
                select from read_model.subscription_owner_live n
                where n.stream = s.stream and n.app_id = of_app
            )
        union
        select s.stream
        from later l
        join read_model.subscription_live s
            on s.previous_original_transaction_id = l.stream and s.app_id = of_app
        where not exists (
            select from read_model.subscription_owner_live n
            where n.stream = s.stream and n.app_id = of_app
        )
    ),
    -- Ends with the first that has an owner.
    earlier as (
        select s.previous_original_transaction_id as stream
        from read_model.subscription_live s
        where s.stream = of_stream and s.app_id = of_app
            and s.previous_original_transaction_id is not null
        union
        select s.previous_original_transaction_id
        from earlier e
        join read_model.subscription_live s
            on s.stream = e.stream and s.app_id = of_app
        where s.previous_original_transaction_id is not null
            and not exists (
                select from read_model.subscription_owner_live n
                where n.stream = e.stream and n.app_id = of_app
            )
    )
    select l.stream from later l
    union
    select e.stream
    from earlier e
    where not exists (
            select
            from earlier a
            join read_model.subscription_owner_live n
                on n.stream = a.stream and n.app_id = of_app
        )
        and not exists (
            select
            from earlier a
            join read_model.subscription_live other
                on other.previous_original_transaction_id = a.stream and other.app_id = of_app
            join read_model.subscription_owner_live rival
                on rival.stream = other.stream and rival.app_id = of_app
            where rival.app_account_token <> of_owner
                and other.stream <> of_stream
        )
$$;

comment on function read_model.unowned_aliases is
    'The subscriptions that belong to the owner of one because migrations join them to it.';

-- Each branch begins with the token, so a question about one owner reads that owner's rows only.
-- A customer of the app whose subscriptions name two owners at one time gives neither of them
-- what carries no token.
create or replace view read_model.owner_subscription as
select
    o.app_account_token,
    o.stream as original_transaction_id,
    o.app_id,
    'own' as via,
    o.is_linked,
    o.valid_from as owned_from,
    o.valid_until as owned_until
from read_model.subscription_owner_live o
union all
select
    o.app_account_token,
    a.stream,
    o.app_id,
    'alias',
    o.is_linked,
    o.valid_from,
    o.valid_until
from read_model.subscription_owner_live o
join read_model.subscription_live owned
    on owned.stream = o.stream and owned.app_id = o.app_id
cross join lateral read_model.unowned_aliases(o.app_id, o.stream, o.app_account_token) a
-- Most subscriptions were never migrated: two look-ups spare them the rest.
where owned.previous_original_transaction_id is not null
    or exists (
        select from read_model.subscription_live s
        where s.previous_original_transaction_id = o.stream and s.app_id = o.app_id
    )
union all
select
    o.app_account_token,
    s.stream,
    s.app_id,
    case s.ownership
        when 'FAMILY_SHARED' then 'family'
        when 'ASSIGNED' then 'assigned'
        else 'customer'
    end,
    o.is_linked,
    o.valid_from,
    o.valid_until
from read_model.subscription_owner_live o
join read_model.subscription_live owned
    on owned.stream = o.stream and owned.app_id = o.app_id
join read_model.subscription_live s
    on s.app_transaction_id = owned.app_transaction_id and s.app_id = o.app_id
    and s.stream <> o.stream
where not exists (
        select from read_model.subscription_owner_live n
        where n.stream = s.stream and n.app_id = s.app_id
    )
    and not exists (
        select
        from read_model.subscription_live other
        join read_model.subscription_owner_live rival
            on rival.stream = other.stream and rival.app_id = other.app_id
        where other.app_transaction_id = owned.app_transaction_id
            and other.app_id = o.app_id
            and rival.app_account_token <> o.app_account_token
            and rival.valid_from < o.valid_until and o.valid_from < rival.valid_until
    );

comment on view read_model.owner_subscription is
    'All subscriptions of each owner in every environment, with how each belongs to the owner and when.';
comment on column read_model.owner_subscription.app_account_token is 'the owner';
comment on column read_model.owner_subscription.original_transaction_id is
    'Apple''s id of the subscription';
comment on column read_model.owner_subscription.app_id is 'the row of ledger.app';
comment on column read_model.owner_subscription.via is
    'own (Apple''s token or a link), alias (a migration), or of the same customer of the app: family, '
    'assigned, customer (a purchase without a token)';
comment on column read_model.owner_subscription.is_linked is
    'whether an operator''s link, not Apple''s token, names the owner';
comment on column read_model.owner_subscription.owned_from is 'the first instant of the ownership';
comment on column read_model.owner_subscription.owned_until is
    'the first instant after it; infinity for the present owner';

create or replace view read_model.owner_timeline as
select
    i.original_transaction_id,
    i.environment,
    i.bundle_id,
    i.product_id,
    i.state,
    i.cause,
    i.entitled,
    i.entitled_apple,
    i.valid_from,
    i.valid_until,
    i.state_from,
    i.state_until,
    i.access_until_apple,
    i.access_until,
    i.expires_date,
    i.grace_period_expires_date,
    i.confidence,
    i.renewal_intent,
    i.pending_product_id,
    i.price_consent,
    i.has_billing_trouble,
    i.offer,
    i.ownership,
    i.subscription_group_identifier,
    i.level,
    o.app_account_token,
    i.app_transaction_id,
    i.transaction_id,
    i.price,
    i.currency,
    i.policy_version,
    i.known_to_position,
    i.positions,
    i.app_id,
    o.via,
    o.owned_from,
    o.owned_until
from read_model.owner_subscription o
join read_model.entitlement_all i
    on i.original_transaction_id = o.original_transaction_id and i.app_id = o.app_id
    and i.valid_from < o.owned_until and o.owned_from < i.valid_until;

comment on view read_model.owner_timeline is
    'Every stretch of every subscription of each owner, in every environment; a row holds where both its ranges do.';

-- One subscription a person and group counts: an entitled one, of the highest level (1 is the
-- highest, an unknown one the lowest), the longest; never simply the one that expires last.
-- Without a known group each subscription is its own: none may hide another.
create or replace function read_model.owner_entitlement_in(
    of_environment text,
    instant timestamptz
)
returns setof read_model.owner_timeline
language sql stable parallel safe as $$
    select distinct on (
            app_account_token, bundle_id,
            coalesce(subscription_group_identifier, original_transaction_id)
        )
        *
    from read_model.owner_timeline t
    where t.environment = $1 and valid_from <= $2 and $2 < valid_until
        and owned_from <= $2 and $2 < owned_until
    order by
        app_account_token, bundle_id,
        coalesce(subscription_group_identifier, original_transaction_id), entitled desc,
        level nulls last, access_until desc nulls last, original_transaction_id, via
$$;

comment on function read_model.owner_entitlement_in is
    'The one subscription that counts for each owner and group at an instant in one environment.';

create or replace function read_model.owner_entitlement_at(instant timestamptz)
returns setof read_model.owner_timeline
language sql stable parallel safe as $$
    select * from read_model.owner_entitlement_in('Production', $1)
$$;

comment on function read_model.owner_entitlement_at is
    'The one subscription that counts for each owner and group at an instant; Production only.';

create or replace function read_model.owner_entitlement_at_sandbox(instant timestamptz)
returns setof read_model.owner_timeline
language sql stable parallel safe as $$
    select * from read_model.owner_entitlement_in('Sandbox', $1)
$$;

comment on function read_model.owner_entitlement_at_sandbox is
    'owner_entitlement_at of the Sandbox environment.';

create or replace view read_model.owner_entitlement_now as
select * from read_model.owner_entitlement_in('Production', now());

comment on view read_model.owner_entitlement_now is
    'The one subscription that counts for each owner and group at this moment; Production only.';

create or replace view read_model.owner_entitlement_now_sandbox as
select * from read_model.owner_entitlement_in('Sandbox', now());

comment on view read_model.owner_entitlement_now_sandbox is
    'owner_entitlement_now of the Sandbox environment.';

-- What belongs to no owner at all, for an operator to link. The likely owner is whom all other
-- subscriptions of the same customer of the app name; it is a hint and grants nothing.
create or replace view read_model.unattributed_all as
select
    s.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
    s.product_id,
    s.subscription_group_identifier,
    s.ownership,
    s.original_purchase_date,
    i.state,
    i.cause,
    i.entitled,
    i.access_until,
    s.app_transaction_id,
    (
        select case when count(distinct o.app_account_token) = 1
            then min(o.app_account_token::text)::uuid end
        from read_model.subscription_live related
        join read_model.subscription_owner_live o
            on o.stream = related.stream and o.app_id = related.app_id
            and o.valid_until = 'infinity'
        where related.app_transaction_id = s.app_transaction_id and related.app_id = s.app_id
    ) as likely_owner,
    s.known_to_position,
    s.app_id
from read_model.subscription_live s
join ledger.app a
    on a.app_id = s.app_id
left join read_model.entitlement_interval i
    on i.stream = s.stream and i.app_id = s.app_id and i.generation = s.generation
    and i.valid_from <= now() and now() < i.valid_until
where s.app_account_token is null
    and not exists (
        select from read_model.owner_subscription o
        where o.original_transaction_id = s.stream and o.app_id = s.app_id
    );

comment on view read_model.unattributed_all is
    'Subscriptions that belong to no owner, in every environment, with their state at this moment.';

create or replace view read_model.unattributed_subscription as
select * from read_model.unattributed_all where environment = 'Production';

comment on view read_model.unattributed_subscription is
    'Production subscriptions that belong to no owner; subledger owner link gives them one.';

create or replace view read_model.unattributed_subscription_sandbox as
select * from read_model.unattributed_all where environment = 'Sandbox';

comment on view read_model.unattributed_subscription_sandbox is
    'unattributed_subscription of the Sandbox environment.';

do $do$
declare
    published text;
    line text;
begin
    foreach published in array array[
        'unattributed_all', 'unattributed_subscription', 'unattributed_subscription_sandbox'
    ] loop
        foreach line in array array[
            'original_transaction_id: Apple''s id of the subscription',
            'environment: Production or Sandbox, as Apple signed it',
            'bundle_id: the app',
            'product_id: the product of the period that began last',
            'subscription_group_identifier: the subscription group',
            'ownership: PURCHASED, FAMILY_SHARED, ASSIGNED, or what Apple else signed',
            'original_purchase_date: when the subscription began',
            'state: its state at this moment',
            'cause: why it expired or was revoked; null in other states',
            'entitled: whether our access policy grants access at this moment',
            'access_until: the end of the contiguous run of access; null without access',
            'app_transaction_id: one customer''s copy of the app',
            'likely_owner: whom the other subscriptions of that customer name; null if none or several',
            'known_to_position: the highest position among the subscription''s events',
            'app_id: the row of ledger.app'
        ] loop
            execute format(
                'comment on column read_model.%I.%I is %L',
                published, split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
            );
        end loop;
    end loop;
    -- The columns of an owner's stretch are those of entitlement_all, and three of its own.
    foreach published in array array[
        'owner_timeline', 'owner_entitlement_now', 'owner_entitlement_now_sandbox'
    ] loop
        for line in
            select format(
                'comment on column read_model.%I.%I is %L',
                published, o.attname, col_description(a.attrelid, a.attnum)
            )
            from pg_attribute o
            join pg_attribute a
                on a.attname = o.attname and a.attnum > 0 and a.attrelid = case
                    when o.attname in ('via', 'owned_from', 'owned_until')
                        then 'read_model.owner_subscription'
                    else 'read_model.entitlement_all'
                end::regclass
            where o.attrelid = ('read_model.' || published)::regclass and o.attnum > 0
        loop
            execute line;
        end loop;
    end loop;
end
$do$;
