-- A guardian's withdrawn consent (RESCIND_CONSENT) names no purchase but the customer's copy of the
-- app, an appTransactionId. Its row of ledger.fact carries that number, so that the subscriptions of
-- the customer are found from it, and it from each of them.

create index fact_by_customer
    on ledger.fact (app_transaction_id)
    where app_transaction_id is not null and transaction_id is not null;
create index fact_of_consent
    on ledger.fact (app_transaction_id)
    where notification_type = 'RESCIND_CONSENT' and app_transaction_id is not null;

-- The rows of those that the log holds already name nobody yet; their evidence does.
update ledger.fact
set notification_type = event.notification_type, signed_at = event.signed_at,
    app_transaction_id = substring(part.payload from '"appTransactionId"\s*:\s*"([^"]+)"')
from ledger.event
join ledger.evidence_text as part using (stream, app_id, position)
where event.notification_type = 'RESCIND_CONSENT' and part.layer > 1
    and part.payload like '%"appTransactionId"%'
    and fact.stream = event.stream and fact.app_id = event.app_id
    and fact.position = event.position and fact.app_transaction_id is null;

-- Each is a reason to fold the customer's subscriptions again.
insert into ledger.mark (stream, app_id, position)
select stream, app_id, position from ledger.fact
where notification_type = 'RESCIND_CONSENT' and app_transaction_id is not null
on conflict do nothing;

grant insert on ledger.mark to :"projector";

comment on column ledger.fact.app_transaction_id is
    'The customer''s copy of the app: of the transaction, or of whom a consent was withdrawn for.';
