internal import AppStore
internal import Postgres

/// A log made by SQL, for measuring what reads facts only.
///
/// Nothing in it was ever signed: it has facts and no evidence, so it belongs into a database that
/// is thrown away. Each subscription has ten events: a purchase and monthly renewals; one in ten
/// fails with grace and recovers, one in twenty is refunded, one in five cancels at the end.
enum SyntheticLog {
    static func fill(_ connection: Connection, subscriptions: Int) throws {
        try connection.transaction { connection in
            try connection.execute(
                """
                insert into ledger.app (app_id, bundle_id, environment)
                values (1, 'com.example.benchmark', 'Production') on conflict do nothing
                """
            )
            for slice in 0..<10 {
                let from = subscriptions * slice / 10 + 1
                let until = subscriptions * (slice + 1) / 10
                try connection.query(
                    facts,
                    [.int(Int64(from)), .int(Int64(until)), .int(Int64(FactDecoder.version))]
                )
            }
            try connection.query(
                "update ledger.head set position = $1",
                [.int(Int64(subscriptions * 10))]
            )
        }
        try connection.execute("analyze ledger.fact")
    }

    private static let facts = """
        insert into ledger.fact (
            position, fact_at, signed_at, transaction_signed_date, transaction_digest,
            purchase_date, original_purchase_date, expires_date, revocation_date, price,
            renewal_signed_date, renewal_digest, grace_period_expires_date, renewal_date,
            renewal_price, app_id, status, quantity, revocation_reason, auto_renew_status,
            expiration_intent, decoder, is_upgraded, is_in_billing_retry_period,
            app_account_token, stream, kind, provenance, notification_type, subtype,
            transaction_id, web_order_line_item_id, product_id, subscription_group_identifier,
            type, in_app_ownership_type, transaction_reason, currency, storefront,
            app_transaction_id, renewal_product_id, auto_renew_product_id, renewal_currency
        )
        select
            (s - 1) * 10::bigint + e + 1,
            signed, signed, signed, s * 100::bigint + e,
            began, born, began + interval '30 days',
            case when is_refund then signed end, 9990,
            signed, s * 100::bigint + e,
            case when is_failure then began + interval '46 days' end,
            began + interval '30 days', 9990, 1,
            case when is_failure then 4 else 1 end, 1, case when is_refund then 0 end,
            case when is_end then 0 else 1 end,
            case when is_failure then 2 when is_end then 1 end, $3::smallint, false, is_failure,
            md5((s % 1000000)::text)::uuid, (1000000000 + s)::text, 'notification', 'jws',
            case
                when e = 0 then 'SUBSCRIBED' when is_failure then 'DID_FAIL_TO_RENEW'
                when is_refund then 'REFUND' when is_end then 'DID_CHANGE_RENEWAL_STATUS'
                else 'DID_RENEW'
            end,
            case
                when e = 0 then 'INITIAL_BUY' when is_failure then 'GRACE_PERIOD'
                when is_end then 'AUTO_RENEW_DISABLED'
            end,
            (1000000000000 + s * 10::bigint + period)::text,
            (2000000000000 + s * 10::bigint + period)::text,
            'plan.' || s % 8, 'group.' || s % 2, 'Auto-Renewable Subscription', 'PURCHASED',
            case when e = 0 then 'PURCHASE' else 'RENEWAL' end, 'EUR', 'DEU',
            (3000000000000 + s)::text, 'plan.' || s % 8, 'plan.' || s % 8, 'EUR'
        from (
            select s, e, period, is_failure, is_refund, is_end,
                timestamptz '2024-01-01Z' + s % 365 * interval '1 day' as born,
                timestamptz '2024-01-01Z' + s % 365 * interval '1 day'
                    + period * interval '30 days' as began,
                timestamptz '2024-01-01Z' + s % 365 * interval '1 day'
                    + period * interval '30 days'
                    + case
                        when is_failure then interval '30 days'
                        when is_refund or is_end then interval '5 days'
                        else interval '0'
                    end as signed
            from generate_series($1::integer, $2::integer) as s
            cross join generate_series(0, 9) as e
            cross join lateral (
                select s % 10 = 3 and e = 5 as is_failure, s % 20 = 7 and e = 7 as is_refund,
                    s % 5 = 1 and e = 9 as is_end
            ) as kinds
            cross join lateral (
                select case when is_failure or is_refund or is_end then e - 1 else e end as period
            ) as periods
        ) as events
        """
}
