-- Why a customer wishes for a refund, as Apple's CONSUMPTION_REQUEST says. Rows that an older decoder
-- filled have none; what they leave out is in their evidence, and is decoded from there.

alter table ledger.fact add column consumption_request_reason text collate "C";

comment on column ledger.fact.consumption_request_reason is
    'Apple''s consumptionRequestReason, values that are not known yet too; null where the notification has none.';
