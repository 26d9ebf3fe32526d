import EventLog
import Ledger
import LedgerService
import Postgres
import Projections
import TestSupport
import Testing

/// What is published stays, is explained, and is a function of the log.
@Suite struct ReadModelContractTests {
    /// Arguments, columns and types of what is published about churn, recovery and owners, in
    /// order: they are only ever added to, at the end.
    private static let published = """
        billing_recovery_all: original_transaction_id text, environment text, bundle_id text,
          product_id text, transaction_id text, ownership text, was_trial_conversion boolean,
          opened_at timestamptz, expires_date timestamptz, grace_from timestamptz, grace_until
          timestamptz, grace_source text, grace_exhausted_at timestamptz, retry_deadline
          timestamptz, outcome text, closed_at timestamptz, ends_at timestamptz,
          unpaid_access_ms bigint, amount_at_risk bigint, currency text, cause text,
          opening_position bigint, closing_position bigint, positions bigint[],
          known_to_position bigint, app_id integer

        billing_recovery_now: original_transaction_id text, environment text, bundle_id text,
          product_id text, app_account_token uuid, state text, entitled boolean,
          entitled_apple boolean, access_until timestamptz, cause text, renewal_intent text,
          opened_at timestamptz, expires_date timestamptz, grace_from timestamptz, grace_until
          timestamptz, grace_source text, grace_exhausted_at timestamptz, retry_deadline
          timestamptz, days_unpaid_access numeric, amount_at_risk bigint, currency text,
          was_trial_conversion boolean, opening_position bigint, positions bigint[],
          known_to_position bigint, app_id integer

        billing_recovery_now_sandbox: original_transaction_id text, environment text,
          bundle_id text, product_id text, app_account_token uuid, state text, entitled
          boolean, entitled_apple boolean, access_until timestamptz, cause text,
          renewal_intent text, opened_at timestamptz, expires_date timestamptz, grace_from
          timestamptz, grace_until timestamptz, grace_source text, grace_exhausted_at
          timestamptz, retry_deadline timestamptz, days_unpaid_access numeric, amount_at_risk
          bigint, currency text, was_trial_conversion boolean, opening_position bigint,
          positions bigint[], known_to_position bigint, app_id integer

        billing_recovery_rate(since date, until date, by text, zone text, environment text,
          as_of timestamptz, bundle_id text): cohort_start date, cohort_until date,
          all_currencies boolean, currency text, failures bigint, open bigint, recovered
          bigint, recovered_in_grace bigint, recovered_after_grace bigint, cancelled bigint,
          expired bigint, unknown bigint, recovery_rate numeric, in_grace_share numeric,
          trial_failures bigint, trial_recovered bigint, amount_at_risk numeric,
          amount_recovered numeric, amount_recovery_rate numeric, matured boolean,
          known_to_position bigint

        churn_by_cause(from_date date, to_date date, zone text, environment text, as_of
          timestamptz, target_currency text): month date, cause text, currency text,
          access_churn bigint, final_churn bigint, final_unconfirmed bigint, price_influenced
          bigint, extended bigint, tenure_days_mean numeric, mrr_lost numeric,
          known_to_position bigint

        churn_monthly(from_date date, to_date date, zone text, environment text, as_of
          timestamptz): month date, product_id text, currency text, active_start bigint,
          new_paid bigint, trial_converted bigint, reactivated bigint, recovered bigint,
          switched_in bigint, churn_voluntary bigint, churn_involuntary bigint, churn_price
          bigint, churn_product bigint, churn_refund bigint, churn_other bigint,
          lapsed_unconfirmed bigint, switched_out bigint, corrections bigint, active_end
          bigint, access_churn bigint, churned_of_start bigint, churned_of_start_any bigint,
          gross_churn_rate numeric, net_churn_rate numeric, reactivated_returning bigint,
          reactivated_new_run bigint, reactivated_win_back bigint, known_to_position bigint,
          at_risk_intent bigint, at_risk_billing bigint, at_risk_grace bigint, at_risk_price
          bigint

        cohort_retention(from_date date, to_date date, zone text, environment text, as_of
          timestamptz): month date, product_id text, plan_period text, period integer, size
          bigint, opportunity bigint, retained bigint, retention_rate numeric, mature boolean,
          known_to_position bigint, currency text, retained_revenue numeric

        extension_audit: original_transaction_id text, environment text, bundle_id text,
          outcome text, scope text, requested_by text, operator_authenticated text,
          operator_claimed text, requester_role text, authn_method text, on_behalf_of text,
          approved_by text, approver_role text, rejected_by text, service_identity text,
          apple_key_id text, client_ip text, session_id text, os_user text, host text,
          database_role text, channel text, requested_at timestamptz, approved_at timestamptz,
          rejected_at timestamptz, submitted_at timestamptz, acked_at timestamptz,
          confirmed_at timestamptz, apple_signed_at timestamptz, apple_effective_at
          timestamptz, clock_source text, apple_reason_code integer, apple_reason text,
          internal_reason text, justification text, ticket_system text, ticket_id text,
          ticket_url text, incident_id text, policy_version integer, chain_id text,
          transaction_id text, web_order_line_item_id text, product_id text, owner uuid,
          ownership text, storefront text, mass_request_id uuid, days_requested integer,
          expires_before timestamptz, expires_before_position bigint, state_before text,
          expires_acked timestamptz, expires_confirmed timestamptz, expires_confirmed_position
          bigint, days_effective numeric, state_after text, extensions_365d_before_chain
          integer, extensions_365d_before_owner integer, budget_rule_version integer,
          override_by text, counts_from timestamptz, request_identifier uuid, http_status
          integer, apple_error_code bigint, apple_error_message text, transport_failure text,
          raw_body_hash text, raw_body_position bigint, attempt integer, latency_ms bigint,
          status text, contradiction boolean, resolution text, resolved_by text, refusal_rule
          text, ineligible_rule text, approval_rule text, fresh_status boolean,
          attempt_ineligible boolean, notification_uuid text, requested_position bigint,
          approved_position bigint, submitted_position bigint, answered_position bigint,
          confirmed_position bigint, evidence_positions bigint[], is_open boolean, at
          timestamptz, sequence integer, known_to_position bigint, app_id integer,
          refused_approvals bigint, refused_approver text, refused_approval_at timestamptz,
          retried_by_request uuid, retry_of_mass_request uuid

        extension_budget: original_transaction_id text, environment text, bundle_id text,
          owner uuid, used_subscription bigint, used_owner bigint, used bigint, remaining
          bigint, more_from timestamptz, app_id integer

        extension_budget_at(instant timestamptz): original_transaction_id text, environment
          text, bundle_id text, owner uuid, used_subscription bigint, used_owner bigint, used
          bigint, remaining bigint, more_from timestamptz, app_id integer

        extension_monthly(from_date date, to_date date, zone text, environment text): month
          date, apple_reason text, operator text, requests bigint, granted bigint,
          days_granted numeric, refused_locally bigint, refused_by_apple bigint, unsettled
          bigint, external bigint

        lifecycle: original_transaction_id text, environment text, bundle_id text,
          effective_at timestamptz, kind text, cause text, active_delta integer, product_id
          text, plan_period text, currency text, storefront text, offer text, price_milliunits
          bigint, quantity bigint, mrr_milliunits bigint, mrr_delta bigint, mrr_movement text,
          amount_milliunits bigint, confidence text, spell integer, paid_periods integer,
          tenure_days integer, active_since timestamptz, held_since timestamptz, related_at
          timestamptz, price_influenced boolean, extended boolean, charged_at timestamptz[],
          paid_ordinals integer[], positions bigint[], known_to_position bigint, sequence
          integer, app_id integer, standard_mrr_milliunits bigint, standard_mrr_delta bigint,
          risk_delta integer, paid_amounts bigint[], succeeds text

        mass_extension: request_identifier uuid, environment text, bundle_id text, product_id
          text, storefronts text[], days_requested integer, apple_reason_code integer,
          ticket_id text, justification text, requested_by text, operator_claimed text,
          on_behalf_of text, approved_by text, requested_at timestamptz, submitted_at
          timestamptz, outcome text, complete boolean, complete_date timestamptz, summary_at
          timestamptz, status_asked_at timestamptz, succeeded_count bigint, failed_count
          bigint, own_succeeded_count bigint, own_failed_count bigint, succeeded_differs
          boolean, failed_differs boolean, evidence_positions bigint[], summary_position
          bigint, app_id integer, refused_approvals bigint

        mrr_monthly(from_date date, to_date date, zone text, environment text, as_of
          timestamptz, target_currency text): month date, product_id text, currency text,
          mrr_start numeric, mrr_new numeric, mrr_reactivation numeric, mrr_expansion numeric,
          mrr_contraction numeric, mrr_churn numeric, mrr_lapsed_unconfirmed numeric,
          mrr_correction numeric, mrr_currency numeric, mrr_fx numeric, mrr_end numeric,
          gross_mrr_churn_rate numeric, net_mrr_churn_rate numeric, known_to_position bigint,
          standard_mrr_start numeric, standard_mrr_end numeric

        owner_subscription: app_account_token uuid, original_transaction_id text, app_id
          integer, via text, is_linked boolean, owned_from timestamptz, owned_until
          timestamptz

        refund_rate(from_date date, to_date date, zone text, environment text, as_of
          timestamptz, target_currency text): month date, product_id text, currency text,
          charges bigint, charged numeric, refunded_of_charges numeric,
          refund_rate_by_purchase numeric, refunds bigint, refunded numeric, reversed numeric,
          refund_rate_by_refund numeric, known_to_position bigint

        trial_conversion(from_date date, to_date date, zone text, environment text, as_of
          timestamptz): month date, product_id text, started bigint, converted bigint,
          lost_voluntary bigint, lost_billing bigint, lost_other bigint, lost_unconfirmed
          bigint, open bigint, conversion_rate numeric, mature boolean, known_to_position
          bigint

        unattributed_extension: original_transaction_id text, environment text, bundle_id
          text, product_id text, storefront text, owner uuid, ownership text, confirmed_at
          timestamptz, expires_before timestamptz, expires_confirmed timestamptz,
          days_effective numeric, state_before text, notification_uuid text,
          confirmed_position bigint, evidence_positions bigint[], known_to_position bigint,
          app_id integer

        unattributed_subscription: original_transaction_id text, environment text, bundle_id
          text, product_id text, subscription_group_identifier text, ownership text,
          original_purchase_date timestamptz, state text, cause text, entitled boolean,
          access_until timestamptz, app_transaction_id text, likely_owner uuid,
          known_to_position bigint, app_id integer

        unattributed_subscription_sandbox: original_transaction_id text, environment text,
          bundle_id text, product_id text, subscription_group_identifier text, ownership text,
          original_purchase_date timestamptz, state text, cause text, entitled boolean,
          access_until timestamptz, app_transaction_id text, likely_owner uuid,
          known_to_position bigint, app_id integer
        """

    /// The published lines, each as one.
    private static var contracts: [String] {
        var lines: [String] = []
        for line in published.split(separator: "\n") {
            if line.hasPrefix("  ") {
                lines[lines.count - 1] += " " + line.drop { $0 == " " }
            } else {
                lines.append(String(line))
            }
        }
        return lines
    }

    @Test func whatIsPublishedKeepsItsColumnsAndTypes() throws {
        let log = try LogFixture()
        let names = Self.contracts.map { String($0.prefix { $0 != "(" && $0 != ":" }) }
        #expect(names.count == 20)
        let rows = try log.connection.query(
            """
            select p.proname || '(' || string_agg(a.name || ' ' || format_type(a.type, null), ', '
                    order by a.place) filter (where a.mode = 'i') || '): '
                || string_agg(a.name || ' ' || format_type(a.type, null), ', '
                    order by a.place) filter (where a.mode = 't')
            from pg_proc p
            cross join lateral unnest(p.proargnames, p.proallargtypes, p.proargmodes)
                with ordinality as a (name, type, mode, place)
            where p.pronamespace = 'read_model'::regnamespace and p.proname = any ($1::text[])
            group by p.oid, p.proname
            union all
            select c.relname || ': ' || string_agg(a.attname || ' '
                || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace = 'read_model'::regnamespace and c.relname = any ($1::text[])
            group by c.oid, c.relname
            """,
            [.text("{\(names.joined(separator: ","))}")]
        )
        let found = (0..<rows.count).map { row in
            (rows.text(row, 0) ?? "").replacing("timestamp with time zone", with: "timestamptz")
        }
        for contract in Self.contracts {
            #expect(found.contains(contract), "\(contract.prefix { $0 != ":" })")
        }
        #expect(found.count == names.count)
    }

    @Test func everyViewAndTableIsExplainedColumnByColumn() throws {
        let log = try LogFixture()
        let missing = try log.connection.query(
            """
            select c.relname || '.' || a.attname
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            where c.relnamespace = 'read_model'::regnamespace
                and c.relname ~ '^(billing|unattributed|lifecycle|owner|mass_extension|extension)_?'
                and c.relname !~ '(_g1|_live|_explained)$' and c.relkind in ('p', 'v')
                and col_description(c.oid, a.attnum) is null
            order by 1
            """
        )
        #expect((0..<missing.count).map { missing.text($0, 0) } == [])
    }

    @Test func everyFunctionIsExplained() throws {
        let log = try LogFixture()
        let missing = try log.connection.query(
            """
            select proname from pg_proc
            where pronamespace = 'read_model'::regnamespace
                and obj_description(oid, 'pg_proc') is null
            order by 1
            """
        )
        #expect((0..<missing.count).map { missing.text($0, 0) } == [])
    }

    // MARK: - Rows are a function of the log

    private static let tables = [
        ("entitlement", "subscription"), ("entitlement", "entitlement_interval"),
        ("entitlement", "subscription_owner"), ("billing_recovery", "billing_episode"),
        ("churn", "lifecycle_moment"), ("extension_audit", "extension_record"),
    ]

    private func rows(_ log: LogFixture, _ projection: String, _ table: String) throws -> [String] {
        let rows = try log.connection.query(
            """
            select (to_jsonb(t) - 'generation')::text from read_model.\(table) t
            where generation = (select generation from read_model.current where projection = $1)
            order by 1
            """,
            [.text(projection)]
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }

    /// Lives with prices, offers, failures, migrations and refunds, one by one and out of order.
    private static func events(_ log: LogFixture) -> [NewEvent] {
        var events: [NewEvent] = []
        for number in 1...40 {
            let stream = "\(number * 1000)"
            for period in 0..<(2 + number % 4) {
                let start = Double(period * 30)
                let id = UInt64(number * 1000 + period)
                var month = LogFixture.month(id, start) {
                    $0.price = Int64(4990 + number % 3 * 1000)
                    $0.currency = number % 5 == 0 ? "EUR" : "USD"
                    if period == 0, number % 3 == 0 { $0.offerType = 1 }
                    if number % 6 == 0 {
                        $0.previousOriginalTransactionID = AppleID(UInt64((number - 1) * 1000))
                    }
                }
                let renewal = LogFixture.renewal {
                    $0.renewalPrice = 9990
                    $0.autoRenewStatus = number % 4 == 1 ? 0 : 1
                }
                events.append(
                    log.event(
                        stream,
                        "\(id)",
                        period == 0 ? .subscribed : .didRenew,
                        at: LogFixture.day(start),
                        month,
                        renewal
                    )
                )
                guard number % 7 == period else { continue }
                month.revocationDate = LogFixture.day(start + 9)
                month.digest += 1_000_000
                let at = LogFixture.day(start + 10)
                events.append(log.event(stream, "\(id)-refund", .refund, at: at, month))
            }
            let end = Double((2 + number % 4) * 30)
            let failing = LogFixture.renewal {
                $0.isInBillingRetryPeriod = true
                if number % 2 == 0 { $0.gracePeriodExpiresDate = LogFixture.day(end + 16) }
            }
            let at = LogFixture.day(end - 0.1)
            events.append(
                log.event(stream, "\(stream)-fail", .didFailToRenew, at: at, nil, failing)
            )
        }
        var random = SeededNumbers(seed: 4)
        return events.shuffled(using: &random)
    }

    @Test func rebuildingGivesTheRowsThatLiveProjectingGave() throws {
        let log = try LogFixture()
        let events = Self.events(log)
        for part in stride(from: 0, to: events.count, by: 31) {
            try log.append(Array(events[part..<min(part + 31, events.count)]))
            try Projector(log.connection).project()
        }
        var live: [String: [String]] = [:]
        for (projection, table) in Self.tables {
            live[table] = try rows(log, projection, table)
            // These lives name no owner and are never extended.
            let isFilled = !["subscription_owner", "extension_record"].contains(table)
            #expect((live[table]?.count ?? 0) >= (isFilled ? 40 : 0), "\(table)")
        }
        #expect(try log.count("read_model.lifecycle where succeeds is not null") == 6)
        _ = try Rebuild(connect: log.connect).run()
        for (projection, table) in Self.tables {
            #expect(try rows(log, projection, table) == live[table], "\(table)")
        }
    }
}
