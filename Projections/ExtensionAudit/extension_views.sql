-- The published views of the read model "extension_audit". Columns are only added at the end.

set local role :"projector";

create or replace view read_model.extension_record_live as
select * from read_model.extension_record
where generation = (
    select generation from read_model.current where projection = 'extension_audit'
);

comment on view read_model.extension_record_live is
    'The rows of extension_record that the views show.';

-- Mass requests, with what Apple last said of how far they are. What its notification sums up
-- outranks an answer to our question.
create or replace view read_model.mass_request as
select
    r.app_id,
    r.stream,
    r.request_identifier,
    r.at,
    r.outcome,
    r.submitted_at,
    q.product_id,
    string_to_array(q.storefronts, ',') as storefronts,
    q.days,
    s.signed_at as summary_at,
    s.position as summary_position,
    coalesce((s.summary ->> 'succeededCount')::bigint, p.succeeded_count) as succeeded_count,
    coalesce((s.summary ->> 'failedCount')::bigint, p.failed_count) as failed_count,
    s.position is not null or coalesce(p.complete, false) as complete,
    coalesce(p.complete_date, s.signed_at) as complete_date,
    p.at as asked_at
from read_model.extension_record_live r
join ledger.extension_request q
    on q.stream = r.stream and q.app_id = r.app_id
    and q.request_identifier = r.request_identifier
left join lateral (
    select e.position, e.signed_at,
        ledger.json_or_null(ledger.utf8_or_null(v.payloads[1])) -> 'summary' as summary
    from ledger.event e
    join ledger.evidence v
        on v.stream = e.stream and v.app_id = e.app_id and v.position = e.position
    where e.stream = r.stream and e.app_id = r.app_id
        and e.notification_type = 'RENEWAL_EXTENSION' and e.subtype = 'SUMMARY'
    order by e.signed_at desc, e.position desc
    limit 1
) s on true
left join lateral (
    select p.at, p.complete, p.complete_date, p.succeeded_count, p.failed_count
    from ledger.extension_step p
    where p.stream = r.stream and p.app_id = r.app_id and p.kind = 'mass_extension_status'
        and p.request_identifier = r.request_identifier
    order by p.at desc, p.position desc
    limit 1
) p on true
where r.scope = 'mass';

comment on view read_model.mass_request is
    'Each mass extension that was asked for, with what Apple says of how far it is.';

-- Apple's notices name no request. What a subscription's own requests do not explain is laid to
-- the newest mass request of its product and storefront that was sent before, was not complete
-- for longer than three days, and asked for as many days as were gained; for a refusal the days
-- are not known. Two weeks after it was sent a request that never became complete explains
-- nothing any more.
create or replace view read_model.extension_record_explained as
select
    r.*,
    m.request_identifier as mass_request_identifier,
    m.days as mass_days
from read_model.extension_record_live r
left join lateral (
    select m.request_identifier, m.days
    from read_model.mass_request m
    where r.request_identifier is null
        and m.app_id = r.app_id
        and m.product_id = r.product_id
        and (m.storefronts is null or r.storefront = any (m.storefronts))
        and (r.gained_ms is null or r.gained_ms = m.days * bigint '86400000')
        and m.submitted_at <= r.at + interval '10 minutes'
        and r.at < coalesce(m.complete_date + interval '3 days', m.submitted_at + interval '14 days')
    order by m.submitted_at desc, m.request_identifier
    limit 1
) m on true
where r.scope = 'single';

comment on view read_model.extension_record_explained is
    'The records of single subscriptions, with the mass request that explains them.';

create or replace view read_model.extension_audit as
select
    r.stream as original_transaction_id,
    a.environment,
    a.bundle_id,
    case
        when r.outcome = 'external' and r.mass_request_identifier is not null then 'confirmed'
        else r.outcome
    end as outcome,
    case when r.mass_request_identifier is null then r.scope else 'mass' end as scope,
    -- Who.
    coalesce(q.operator_authenticated, mq.operator_authenticated) as requested_by,
    coalesce(q.operator_authenticated, mq.operator_authenticated) as operator_authenticated,
    coalesce(q.operator_claimed, mq.operator_claimed) as operator_claimed,
    coalesce(q.requester_role, mq.requester_role) as requester_role,
    coalesce(q.authn_method, mq.authn_method) as authn_method,
    coalesce(q.on_behalf_of, mq.on_behalf_of) as on_behalf_of,
    d.operator_authenticated as approved_by,
    d.requester_role as approver_role,
    x.operator_authenticated as rejected_by,
    coalesce(q.service_identity, mq.service_identity) as service_identity,
    n.apple_key_id,
    coalesce(q.client_ip, mq.client_ip) as client_ip,
    coalesce(q.session_id, mq.session_id) as session_id,
    q.os_user,
    q.host,
    q.database_role,
    coalesce(q.channel, mq.channel) as channel,
    -- When.
    case when r.requested_position is not null then r.at end as requested_at,
    r.approved_at,
    r.rejected_at,
    r.submitted_at,
    r.answered_at as acked_at,
    r.confirmed_at,
    r.confirmed_at as apple_signed_at,
    coalesce(r.confirmed_at, r.answered_at) as apple_effective_at,
    case
        when r.confirmed_at is not null then 'apple'
        else 'own'
    end as clock_source,
    -- Why.
    coalesce(q.reason_code, mq.reason_code) as apple_reason_code,
    case coalesce(q.reason_code, mq.reason_code)
        when 0 then 'undeclared'
        when 1 then 'customer-satisfaction'
        when 2 then 'other'
        when 3 then 'service-issue'
    end as apple_reason,
    coalesce(q.internal_reason, mq.internal_reason) as internal_reason,
    coalesce(q.justification, mq.justification) as justification,
    coalesce(q.ticket_system, mq.ticket_system) as ticket_system,
    coalesce(q.ticket, mq.ticket) as ticket_id,
    coalesce(q.ticket_url, mq.ticket_url) as ticket_url,
    coalesce(q.incident_id, mq.incident_id) as incident_id,
    q.policy_version,
    -- What.
    r.stream as chain_id,
    coalesce(q.transaction_id, r.transaction_id) as transaction_id,
    coalesce(q.web_order_line_item_id, r.web_order_line_item_id) as web_order_line_item_id,
    coalesce(q.product_id, r.product_id) as product_id,
    case when q.position is null then r.owner else q.owner end as owner,
    coalesce(q.ownership, r.ownership) as ownership,
    r.storefront,
    r.mass_request_identifier as mass_request_id,
    coalesce(r.days_requested, r.mass_days) as days_requested,
    -- Before and after.
    coalesce(q.expires_before, r.expires_before) as expires_before,
    coalesce(q.expires_before_position, r.expires_before_position) as expires_before_position,
    coalesce(q.state_before, r.state_before) as state_before,
    r.expires_acked,
    r.expires_confirmed,
    r.confirmed_position as expires_confirmed_position,
    round(r.gained_ms / 86400000.0, 3) as days_effective,
    r.state_after,
    -- Budget.
    q.extensions_before_chain as extensions_365d_before_chain,
    q.extensions_before_owner as extensions_365d_before_owner,
    q.budget_rule_version,
    null::text as override_by,
    r.counts_from,
    -- Apple's answer.
    r.request_identifier,
    n.http_status,
    n.apple_error_code,
    n.apple_error_message,
    n.failure as transport_failure,
    n.body_digest as raw_body_hash,
    n.position as raw_body_position,
    r.attempts as attempt,
    n.latency_ms,
    -- Outcome.
    r.outcome as status,
    r.outcome = 'contradicted' as contradiction,
    r.resolution,
    v.operator_authenticated as resolved_by,
    coalesce(f.rule, case when r.rejected_at is not null then 'rejected' end) as refusal_rule,
    q.ineligible_rule,
    q.approval_rule,
    q.fresh_status,
    q.attempt_ineligible,
    case when starts_with(e.event_key, 'n:') then substr(e.event_key, 3) end
        as notification_uuid,
    r.requested_position,
    r.approved_position,
    r.submitted_position,
    r.answered_position,
    r.confirmed_position,
    r.positions as evidence_positions,
    r.is_open,
    r.at,
    r.sequence,
    r.known_to_position,
    r.app_id,
    -- Approvals that were refused, and what a mass request could not do and was asked for singly.
    coalesce(k.count, 0) as refused_approvals,
    k.operator as refused_approver,
    k.at as refused_approval_at,
    t.request_identifier as retried_by_request,
    b.mass_request_identifier as retry_of_mass_request
from read_model.extension_record_explained r
join ledger.app a
    on a.app_id = r.app_id
left join ledger.extension_request q
    on q.stream = r.stream and q.app_id = r.app_id
    and q.request_identifier = r.request_identifier
left join ledger.extension_request mq
    on mq.stream = 'mass:' || r.mass_request_identifier and mq.app_id = r.app_id
    and mq.request_identifier = r.mass_request_identifier
left join ledger.extension_step f
    on f.stream = r.stream and f.app_id = r.app_id and f.position = r.refused_position
left join ledger.extension_step d
    on d.stream = r.stream and d.app_id = r.app_id and d.position = r.approved_position
left join ledger.extension_step x
    on x.stream = r.stream and x.app_id = r.app_id and x.position = r.rejected_position
left join ledger.extension_step n
    on n.stream = r.stream and n.app_id = r.app_id and n.position = r.answered_position
left join ledger.extension_step v
    on v.stream = r.stream and v.app_id = r.app_id and v.position = r.resolved_position
left join ledger.event e
    on e.stream = r.stream and e.app_id = r.app_id
    and e.position = coalesce(
        r.confirmed_position,
        case when r.request_identifier is null then r.answered_position end
    )
left join lateral (
    select
        count(*) as count,
        max(s.at) as at,
        (array_agg(s.operator_authenticated order by s.at desc, s.position desc))[1] as operator
    from ledger.extension_step s
    where q.approval_rule is not null
        and s.stream = r.stream and s.app_id = r.app_id
        and s.request_identifier = r.request_identifier
        and s.kind = 'extension_approval_refused'
) k on true
left join lateral (
    select o.request_identifier
    from read_model.extension_record_live o
    where r.mass_request_identifier is not null and r.outcome = 'refused_by_apple'
        and o.stream = r.stream and o.app_id = r.app_id
        and o.request_identifier is not null and o.at > r.at
    order by o.at, o.sequence
    limit 1
) t on true
left join lateral (
    select o.mass_request_identifier
    from read_model.extension_record_explained o
    where r.request_identifier is not null
        and o.stream = r.stream and o.app_id = r.app_id
        and o.mass_request_identifier is not null and o.outcome = 'refused_by_apple'
        and o.at < r.at
        and not exists (
            select from read_model.extension_record_live p
            where p.stream = r.stream and p.app_id = r.app_id
                and p.request_identifier is not null and p.at > o.at and p.at < r.at
        )
    order by o.at desc, o.sequence desc
    limit 1
) b on true;

comment on view read_model.extension_audit is
    'One row for each request to extend a subscription, and for each extension or refusal that was '
    'seen without one; for the auditor.';

create or replace view read_model.unattributed_extension as
select
    original_transaction_id, environment, bundle_id, product_id, storefront, owner, ownership,
    confirmed_at, expires_before, expires_confirmed, days_effective, state_before,
    notification_uuid, confirmed_position, evidence_positions, known_to_position, app_id
from read_model.extension_audit
where outcome = 'external';

comment on view read_model.unattributed_extension is
    'Extensions that Apple signed and that nobody here asked for.';
