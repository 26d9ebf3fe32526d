-- Rows of made-up subscriptions, $1 of them, straight into the read model of entitlement: for
-- timing questions, not for what they answer. Three intervals each, two subscriptions an owner.

with made as (
    select n,
        '2' || lpad(n::text, 15, '0') as stream,
        ('00000000-0000-4000-8000-' || lpad(to_hex(n / 2), 12, '0'))::uuid as token,
        timestamptz '2025-01-01 00:00:00Z' + n % 300 * interval '1 day' as bought
    from generate_series(1, $1::integer) as n
), subscriptions as (
    insert into read_model.subscription (generation, app_id, stream, original_purchase_date,
        product_id, subscription_group_identifier, level, ownership, app_account_token,
        owner_since, app_transaction_id, transaction_id, purchase_date, expires_date, price,
        currency, storefront, auto_renew_status, status, last_signed_at, anomalies,
        known_to_position)
    select 1, 1, stream, bought, 'gold.month', '20001001', 1, 'PURCHASED', token, bought,
        '704' || lpad(n::text, 15, '0'), stream, bought, bought + interval '90 days', 9990, 'EUR',
        'DEU', 1, 1, bought, '{}', n
    from made
), owners as (
    insert into read_model.subscription_owner (generation, app_id, stream, valid_from,
        valid_until, app_account_token, position, is_linked)
    select 1, 1, stream, bought, 'infinity', token, n, false from made
)
insert into read_model.entitlement_interval (generation, app_id, stream, valid_from,
    valid_until, state, cause, state_from, state_until, entitled_apple, entitled,
    access_until_apple, access_until, policy_version, product_id, level, transaction_id,
    expires_date, offer, renewal_intent, price_consent, ownership, price, currency, confidence,
    has_billing_trouble, positions)
select 1, 1, stream, bought + part * interval '90 days',
    case part when 2 then 'infinity' else bought + (part + 1) * interval '90 days' end,
    case part when 2 then 'expired' else 'active' end, case part when 2 then 'voluntary' end,
    bought + part * interval '90 days',
    case part when 2 then 'infinity' else bought + (part + 1) * interval '90 days' end,
    part < 2, part < 2, bought + interval '180 days', bought + interval '180 days', 1,
    'gold.month', 1, stream, bought + interval '180 days', 'standard', 'will_renew', 'none',
    'PURCHASED', 9990, 'EUR', 'confirmed', false, array[n]
from made, generate_series(0, 2) as part
