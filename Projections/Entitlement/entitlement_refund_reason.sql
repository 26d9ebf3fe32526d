-- Why the customer wishes for a refund: a column of version 4 of the read model.

set local role :"projector";

alter table read_model.subscription add column refund_request_reason text;

comment on column read_model.subscription.refund_request_reason is
    'Why the customer wishes for it, in Apple''s words, as the last request says that says so.';
