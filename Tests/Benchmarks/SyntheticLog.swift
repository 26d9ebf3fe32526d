internal import AppStore
internal import Postgres

/// A log made by SQL, for measuring what reads facts only.
///
/// Nothing in it was ever signed: it has facts and no evidence, so it belongs into a database that
/// is thrown away. Each subscription has ten events: a purchase and monthly renewals; one in ten
/// fails with grace and recovers, one in twenty is refunded, one in five cancels at the end.
public enum SyntheticLog {
    /// How the events lie on the streams.
    public enum Shape: String, CaseIterable, Sendable {
        /// Ten in each stream, which are spread evenly over the slices.
        case even
        /// The same in the order of time, as they come: a stream's rows lie far apart.
        case byTime = "by-time"
        /// As even, and one stream of 10,000.
        case long
        /// The same, and one of a million that could be folded but for their number.
        case endless
        /// The same, and one of a million that are never folded.
        case unfolded
        /// Ten in each stream, and half of all streams in one slice.
        case oneSlice = "one-slice"
    }

    static func fill(
        _ connection: Connection,
        subscriptions: Int,
        shape: Shape = .even
    ) throws {
        try connection.transaction { connection in
            try connection.execute(
                """
                insert into ledger.app (app_id, bundle_id, environment)
                values (1, 'com.example.benchmark', 'Production') on conflict do nothing
                """
            )
            try connection.execute(names)
            if shape == .oneSlice {
                try connection.query(namesOfOneSlice, [.int(Int64(subscriptions / 2))])
            }
            let decoder = Bind.int(Int64(FactDecoder.version))
            for slice in 0..<10 {
                let isByTime = shape == .byTime
                let from = isByTime ? 1 : subscriptions * slice / 10 + 1
                let until = isByTime ? subscriptions : subscriptions * (slice + 1) / 10
                try connection.query(
                    facts,
                    [
                        .int(Int64(from)), .int(Int64(until)), decoder,
                        .int(isByTime ? Int64(slice) : 0), .int(isByTime ? Int64(slice) : 9),
                        .int(isByTime ? 1 : 10), .int(isByTime ? Int64(subscriptions) : 1),
                    ]
                )
            }
            switch shape {
            case .even, .byTime, .oneSlice: break
            case .long: try connection.query(oneStream, [.int(10_000), decoder])
            case .endless: try connection.query(oneStream, [.int(1_000_000), decoder])
            case .unfolded: try connection.query(unfolded, [.int(1_000_000), decoder])
            }
            try connection.execute(
                "update ledger.head set position = (select max(position) from ledger.fact)"
            )
        }
        try connection.execute("analyze ledger.fact")
    }

    /// Replaces every fact by an equal one, as `subledger redecode` does after a change of the
    /// decoder: rows lie elsewhere then, and what they were is still there.
    static func replace(_ connection: Connection) throws {
        for slice in 0..<32 {
            let part = "ledger.fact_\(slice < 10 ? "0" : "")\(slice)"
            try connection.execute(
                """
                begin;
                create temporary table redecoded on commit drop as
                select * from \(part) order by stream, app_id, position;
                delete from \(part);
                insert into ledger.fact select * from redecoded;
                commit
                """
            )
        }
        try connection.execute("analyze ledger.fact")
    }

    private static let names = """
        create temporary table name on commit drop as
        select 0 as s, '' collate "C" as stream limit 0;
        create unique index on name (s)
        """

    /// Every second subscription gets a name that belongs into the first slice.
    private static let namesOfOneSlice = """
        insert into name
        select row_number() over () * 2, stream
        from (
            select n::text as stream
            from (select generate_series(5000000000, 9000000000) as n) as numbers
            where satisfies_hash_partition('ledger.fact'::regclass, 32, 0, n::text collate "C")
            limit $1
        ) as names
        """

    /// As the renewals of one subscription, an hour apart.
    private static let oneStream = """
        insert into ledger.fact (
            position, fact_at, signed_at, transaction_signed_date, transaction_digest,
            purchase_date, original_purchase_date, expires_date, price, app_id, decoder,
            stream, kind, provenance, notification_type, transaction_id, product_id, type,
            in_app_ownership_type, transaction_reason, currency, storefront
        )
        select
            head.position + e, signed, signed, signed, e, signed, timestamptz '2024-01-01Z',
            signed + interval '1 hour', 9990, 1, $2::smallint, '7000000000', 'notification', 'jws',
            'DID_RENEW', (4000000000000 + e)::text, 'plan.1', 'Auto-Renewable Subscription',
            'PURCHASED', 'RENEWAL', 'EUR', 'DEU'
        from generate_series(1, $1::integer) as e
        cross join lateral (
            select timestamptz '2024-01-01Z' + e * interval '1 hour' as signed
        ) as time
        cross join (select max(position) as position from ledger.fact) as head
        """

    /// As the answers of one run of `reconcile`.
    private static let unfolded = """
        insert into ledger.fact (position, app_id, decoder, stream, kind, provenance)
        select head.position + e, 1, $2::smallint, 'api:run', 'api_response', 'tls'
        from generate_series(1, $1::integer) as e
        cross join (select max(position) as position from ledger.fact) as head
        """

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
            (s - 1) * $6::bigint + e * $7::bigint + 1,
            signed, signed, signed, s * 100::bigint + e,
            began, born, began + interval '30 days',
            case when is_refund then signed end, 9990,
            signed, s * 100::bigint + e,
            case when is_failure then began + interval '46 days' end,
            began + interval '30 days', 9990, 1,
            case when is_failure then 4 else 1 end, 1, case when is_refund then 0 end,
            case when is_end then 0 else 1 end,
            case when is_failure then 2 when is_end then 1 end, $3::smallint, false, is_failure,
            md5((s % 1000000)::text)::uuid, coalesce(
                (select name.stream from name where name.s = events.s),
                (1000000000 + s)::text
            ), 'notification', 'jws',
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
            cross join generate_series($4::integer, $5::integer) as e
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
