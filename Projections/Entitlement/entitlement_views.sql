-- The published views of the read model "entitlement". Columns are only added at the end. Every
-- instant is compared as an instant: no view depends on the session's time zone.
-- Each table is read at its own look-up of the live generation; one statement has one snapshot,
-- so all of them see the same one.

set local role :"projector";

create or replace view read_model.entitlement_all as
select
    i.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
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
    s.subscription_group_identifier,
    i.level,
    o.app_account_token,
    s.app_transaction_id,
    i.transaction_id,
    i.price,
    i.currency,
    i.policy_version,
    s.known_to_position,
    i.positions,
    i.app_id
from read_model.entitlement_interval i
join read_model.subscription s
    on s.stream = i.stream and s.app_id = i.app_id
    and s.generation = (select generation from read_model.current where projection = 'entitlement')
join ledger.app a
    on a.app_id = i.app_id
left join read_model.subscription_owner o
    on o.stream = i.stream and o.app_id = i.app_id
    and o.valid_from <= i.valid_from and i.valid_from < o.valid_until
    and o.generation = (select generation from read_model.current where projection = 'entitlement')
where i.generation = (select generation from read_model.current where projection = 'entitlement');

comment on view read_model.entitlement_all is
    'Every stretch of every subscription in every environment; for auditors, never for look-ups that unlock something.';

create or replace view read_model.entitlement_timeline as
select * from read_model.entitlement_all where environment = 'Production';

comment on view read_model.entitlement_timeline is
    'Every stretch [valid_from, valid_until) of every Production subscription in which nothing changes.';

create or replace view read_model.entitlement_timeline_sandbox as
select * from read_model.entitlement_all where environment = 'Sandbox';

comment on view read_model.entitlement_timeline_sandbox is
    'entitlement_timeline of the Sandbox environment.';

create or replace view read_model.entitlement_now as
select * from read_model.entitlement_timeline
where valid_from <= now() and now() < valid_until;

comment on view read_model.entitlement_now is
    'Who has access to what at this moment: one row for each Production subscription.';

create or replace view read_model.entitlement_now_sandbox as
select * from read_model.entitlement_timeline_sandbox
where valid_from <= now() and now() < valid_until;

comment on view read_model.entitlement_now_sandbox is
    'entitlement_now of the Sandbox environment.';

create or replace function read_model.entitlement_at(instant timestamptz)
returns setof read_model.entitlement_timeline
language sql stable parallel safe as $$
    select * from read_model.entitlement_timeline
    where valid_from <= instant and instant < valid_until
$$;

comment on function read_model.entitlement_at is
    'entitlement_now as of an instant: what the events known today say of it.';

create or replace function read_model.entitlement_at_sandbox(instant timestamptz)
returns setof read_model.entitlement_timeline_sandbox
language sql stable parallel safe as $$
    select * from read_model.entitlement_timeline_sandbox
    where valid_from <= instant and instant < valid_until
$$;

comment on function read_model.entitlement_at_sandbox is
    'entitlement_at of the Sandbox environment.';

do $do$
declare
    published text;
    line text;
begin
    foreach published in array array[
        'entitlement_all', 'entitlement_timeline', 'entitlement_timeline_sandbox',
        'entitlement_now', 'entitlement_now_sandbox'
    ] loop
        foreach line in array array[
            'original_transaction_id: Apple''s id of the subscription, the stream of its events',
            'environment: Production or Sandbox, as Apple signed it',
            'bundle_id: the app',
            'product_id: the product of the covering, or else the last, transaction',
            'state: active, renewal_pending, grace_period, billing_retry, expired or revoked',
            'cause: why it expired or was revoked; null in other states',
            'entitled: whether our access policy grants access',
            'entitled_apple: whether Apple''s line does: active and grace_period',
            'valid_from: the first instant of the stretch that this row is about',
            'valid_until: the first instant after it, when the answer may change; infinity at the open end',
            'state_from: the first instant of the contiguous run of this state',
            'state_until: the first instant after that run; infinity at the open end',
            'access_until_apple: the end of the contiguous run of Apple''s access; null without access',
            'access_until: the end of the contiguous run of access; null without access',
            'expires_date: the end of the paid period',
            'grace_period_expires_date: the end of the grace period, announced or estimated',
            'confidence: confirmed, provisional, estimated, or clock where no news came',
            'renewal_intent: on, off or unknown: whether the next charge will be attempted',
            'pending_product_id: the product of the next period where it is another one',
            'price_consent: none, pending or accepted',
            'has_billing_trouble: whether a failed charge was announced while the period runs',
            'offer: standard, trial, intro, promotional, offer_code, win_back or unknown',
            'ownership: PURCHASED, FAMILY_SHARED, ASSIGNED, or what Apple else signed',
            'subscription_group_identifier: the subscription group',
            'level: the product''s rank in its group by configuration, 1 the highest; null if unknown',
            'app_account_token: the owner in this stretch; null where none is known',
            'app_transaction_id: one customer''s copy of the app',
            'transaction_id: the covering, or else the last, transaction',
            'price: what it cost in milliunits of currency; not for accounting',
            'currency: ISO 4217',
            'policy_version: the version of the access policy that decided entitled',
            'known_to_position: the highest position among the subscription''s events',
            'positions: the positions of the events that decided this row',
            'app_id: the row of ledger.app'
        ] loop
            execute format(
                'comment on column read_model.%I.%I is %L',
                published, split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2)
            );
        end loop;
    end loop;
end
$do$;
