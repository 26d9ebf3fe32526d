-- What the fold needs of each event, decoded. Derived from evidence and rebuildable, so not
-- immutable. Apple's names in snake case; renewal_ and commitment_ as in the signed renewal info.

create table ledger.fact (
    position bigint not null,
    fact_at timestamptz,
    signed_at timestamptz,
    transaction_signed_date timestamptz,
    transaction_digest bigint,
    purchase_date timestamptz,
    original_purchase_date timestamptz,
    expires_date timestamptz,
    revocation_date timestamptz,
    price bigint,
    commitment_expires_date timestamptz,
    renewal_signed_date timestamptz,
    renewal_digest bigint,
    grace_period_expires_date timestamptz,
    renewal_date timestamptz,
    renewal_price bigint,
    recent_subscription_start_date timestamptz,
    commitment_renewal_date timestamptz,
    extension_effective_date timestamptz,
    app_id integer not null,
    status integer,
    quantity integer,
    revocation_reason integer,
    revocation_percentage integer,
    revoked_seat_quantity integer,
    offer_type integer,
    billing_period_number integer,
    total_billing_periods integer,
    auto_renew_status integer,
    expiration_intent integer,
    price_increase_status integer,
    renewal_offer_type integer,
    commitment_auto_renew_status integer,
    renewal_quantity integer,
    decoder smallint not null,
    is_upgraded boolean,
    is_in_billing_retry_period boolean,
    extension_success boolean,
    app_account_token uuid,
    renewal_app_account_token uuid,
    linked_owner uuid,
    stream text collate "C" not null,
    kind text collate "C" not null,
    provenance text collate "C" not null,
    notification_type text collate "C",
    subtype text collate "C",
    transaction_id text collate "C",
    web_order_line_item_id text collate "C",
    product_id text collate "C",
    subscription_group_identifier text collate "C",
    type text collate "C",
    in_app_ownership_type text collate "C",
    transaction_reason text collate "C",
    additional_reason text collate "C",
    revocation_type text collate "C",
    offer_identifier text collate "C",
    offer_discount_type text collate "C",
    offer_period text collate "C",
    currency text collate "C",
    storefront text collate "C",
    app_transaction_id text collate "C",
    billing_plan_type text collate "C",
    previous_original_transaction_id text collate "C",
    renewal_product_id text collate "C",
    auto_renew_product_id text collate "C",
    renewal_currency text collate "C",
    renewal_offer_identifier text collate "C",
    renewal_offer_discount_type text collate "C",
    renewal_app_transaction_id text collate "C",
    renewal_billing_plan_type text collate "C",
    commitment_auto_renew_product_id text collate "C",
    decode_anomalies text[],
    constraint fact_pkey primary key (stream, app_id, position),
    constraint fact_transaction_check
        check ((transaction_id is null) = (transaction_signed_date is null))
) partition by hash (stream);

comment on table ledger.fact is
    'One row for each event: what the fold needs of it, decoded. Rebuildable from evidence.';
comment on column ledger.fact.decoder is
    'The version of the decoder that filled the row; a reader uses rows of its own version only.';
comment on column ledger.fact.fact_at is
    'What facts are ordered by. Null where the event is never folded.';
comment on column ledger.fact.decode_anomalies is
    'What of the signed content could not be held in a column, by column and reason.';

do $$
begin
    for i in 0..31 loop
        execute format(
            'create table ledger.fact_%s partition of ledger.fact'
            ' for values with (modulus 32, remainder %s)',
            lpad(i::text, 2, '0'), i);
    end loop;
end
$$;
