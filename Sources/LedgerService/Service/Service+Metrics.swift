internal import HTTP
internal import Postgres

extension Service {
    /// `GET /metrics`: what Prometheus reads.
    func metrics() -> Answer {
        // What only the database knows is left out while it is away; the rest is told all the same.
        auditors.answer(
            within: .seconds(3),
            otherwise: { [self] in
                var page = MetricsPage()
                addReach(to: &page, isUp: false)
                addOwn(to: &page)
                return Self.response(page)
            },
            { [self] connection in
                let rows = try connection.query(
                    """
                    select (select position from ledger.head),
                        (select count(*) from (select distinct stream, app_id from ledger.mark) m),
                        (select count(*) from read_model.parked),
                        (select coalesce(sum(octet_length(received)), 0) from ledger.quarantine
                            where recorded_at >= date_trunc('day', now(), 'UTC')),
                        (select count(*) from ledger.quarantine q where not exists (
                            select from ledger.quarantine_resolution r where r.stream = q.stream))
                    """
                )
                var page = MetricsPage()
                page.gauge(
                    "subledger_log_position",
                    "The highest position of the log.",
                    Double(rows.int(0, 0) ?? 0)
                )
                page.gauge(
                    "subledger_projection_lag_streams",
                    "Subscriptions whose newest events the read models do not show yet.",
                    Double(rows.int(0, 1) ?? 0)
                )
                page.gauge(
                    "subledger_parked_streams",
                    "Subscriptions that could not be folded.",
                    Double(rows.int(0, 2) ?? 0)
                )
                page.gauge(
                    "subledger_quarantine_bytes_day",
                    "Bytes quarantined since midnight UTC.",
                    Double(rows.int(0, 3) ?? 0)
                )
                page.gauge(
                    "subledger_quarantine_unresolved",
                    "Quarantined documents that nobody has dealt with.",
                    Double(rows.int(0, 4) ?? 0)
                )
                Self.add(try ForwardStanding.all(connection), to: &page)
                add(try Silence.all(connection), to: &page)
                try ExtensionAlerts(connection, now: now()).add(to: &page)
                addReach(to: &page, isUp: true)
                addOwn(to: &page)
                return Self.response(page)
            }
        )
    }

    private static func response(_ page: MetricsPage) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            contentType: "text/plain; version=0.0.4; charset=utf-8",
            body: Array(page.text.utf8)
        )
    }

    private func addReach(to page: inout MetricsPage, isUp: Bool) {
        page.gauge(
            "subledger_database_up",
            "1 where the database answered this question; without it its numbers are missing.",
            isUp ? 1 : 0
        )
    }

    private func add(_ silences: [Silence], to page: inout MetricsPage) {
        page.family(
            "subledger_last_stored_age_seconds",
            "gauge",
            "How long ago the last notification was stored; what is longer ago may be cut."
        )
        for silence in silences {
            guard let age = silence.ageSeconds else { continue }
            page.sample(
                "subledger_last_stored_age_seconds",
                [("environment", silence.environment)],
                Double(age)
            )
        }
        page.family(
            "subledger_last_stored_age_limit_seconds",
            "gauge",
            "The configured limit of that age; missing where there is none."
        )
        for silence in silences {
            guard let limit = options.silence.seconds(silence.environment) else { continue }
            page.sample(
                "subledger_last_stored_age_limit_seconds",
                [("environment", silence.environment)],
                Double(limit)
            )
        }
    }

    private static func add(_ standings: [ForwardStanding], to page: inout MetricsPage) {
        let families: [(String, String, (ForwardStanding) -> Int64)] = [
            ("lag_events", "Events of the log that a destination has not got to.", \.lagEvents),
            ("lag_seconds", "Age of the oldest event that a destination lacks.", \.lagSeconds),
            (
                "waiting_streams",
                "Streams that wait behind a notification that was not taken.",
                \.waitingStreams
            ),
        ]
        for (name, help, value) in families {
            page.family("subledger_forward_\(name)", "gauge", help)
            for standing in standings {
                page.sample(
                    "subledger_forward_\(name)",
                    [("destination", standing.destination)],
                    Double(value(standing))
                )
            }
        }
    }

    private func addForwarding(to page: inout MetricsPage) {
        let families: [(String, String, (Forwarder.Measures) -> Counter)] = [
            ("delivered", "Notifications that a destination took.", \.delivered),
            ("refused", "Notifications that a destination did not take.", \.refused),
            ("unreachable", "Rounds in which a destination was not to be reached.", \.unreachable),
            ("failures", "Rounds that the database ended.", \.failures),
        ]
        for (name, help, counter) in families {
            page.family("subledger_forward_\(name)_total", "counter", help)
            for forwarder in forwarders {
                page.sample(
                    "subledger_forward_\(name)_total",
                    [("destination", forwarder.destination.name)],
                    Double(counter(forwarder.measures).value)
                )
            }
        }
    }

    private func addOwn(to page: inout MetricsPage) {
        page.family("subledger_build_info", "gauge", "The program's version.")
        page.sample("subledger_build_info", [("version", options.version)], 1)
        page.family("subledger_notifications_total", "counter", "Deliveries by what was answered.")
        for reason in Webhook.Measures.reasons {
            page.sample(
                "subledger_notifications_total",
                [("reason", reason)],
                Double(webhook.measures.value(of: reason))
            )
        }
        page.gauge(
            "subledger_quarantine_bytes_day_limit",
            "Bytes that may be quarantined in a day.",
            Double(options.quarantineBytesPerDay)
        )
        page.family(
            "subledger_refusals_outnumber",
            "gauge",
            "1 while more deliveries were refused than accepted in the last ten minutes."
        )
        for standing in watch.standings {
            page.sample(
                "subledger_refusals_outnumber",
                [("environment", standing.origin.rawValue)],
                standing.isOutnumbered ? 1 : 0
            )
        }
        page.counter(
            "subledger_unrecognised_total",
            "Stored notifications with a type or value that this program does not know.",
            webhook.measures.unrecognised.value
        )
        page.histogram(
            "subledger_append_seconds",
            "From the hand-over of a document to the answer of COMMIT.",
            committer.measures.appendSeconds
        )
        page.histogram(
            "subledger_append_batch_size",
            "Documents in one transaction.",
            committer.measures.batchSize
        )
        page.counter(
            "subledger_append_failures_total",
            "Batches that could not be written at once.",
            committer.measures.failures.value
        )
        page.gauge(
            "subledger_append_waiting",
            "Documents that wait for the next transaction.",
            Double(committer.waiting)
        )
        addForwarding(to: &page)
        addAsking(to: &page)
        let condition = projection.condition
        page.counter(
            "subledger_projected_streams_total",
            "Subscriptions folded since the start.",
            condition.streams
        )
        page.counter(
            "subledger_projection_failures_total",
            "Runs of the projection that failed.",
            condition.failures
        )
        page.counter(
            "subledger_refusals_lost_total",
            "Refused deliveries that could not be written down.",
            refusals.lost.value
        )
        page.counter(
            "subledger_tokens_refused_total",
            "Wrong bearer tokens.",
            gatekeeper.refused.value
        )
        page.histogram(
            "subledger_delivery_seconds",
            "From the request line to the end of the answer, deliveries.",
            requests.deliverySeconds
        )
        page.histogram(
            "subledger_query_seconds",
            "From the request line to the end of the answer, all others.",
            requests.querySeconds
        )
        page.family("subledger_requests_total", "counter", "Requests by method, route and status.")
        for entry in requests.counts {
            page.sample(
                "subledger_requests_total",
                [("method", entry.method), ("route", entry.route), ("status", entry.status)],
                Double(entry.count)
            )
        }
        addServer(to: &page)
    }

    /// How asking Apple goes, where a key is set up.
    private func addAsking(to page: inout MetricsPage) {
        options.appStoreMeasures?.add(to: &page)
        guard let condition = reconciling else { return }
        let counters: [(String, String, Int)] = [
            (
                "recovered", "Notifications that Apple had sent and that were missing.",
                condition.recovered
            ),
            ("synced", "Subscriptions that Apple was asked about.", condition.synced),
            (
                "settled", "Requests to extend whose lost answers were settled.",
                condition.settled
            ),
            ("polled", "Questions about mass extensions that were answered.", condition.polled),
            ("failures", "Runs of asking Apple that failed.", condition.failures),
        ]
        for (name, help, count) in counters {
            page.counter("subledger_reconcile_\(name)_total", help, count)
        }
        page.gauge(
            "subledger_reconcile_failing",
            "1 where the last run of asking Apple failed.",
            condition.failure == nil ? 0 : 1
        )
    }

    private func addServer(to page: inout MetricsPage) {
        guard let statistics else { return }
        page.gauge(
            "subledger_connections_open",
            "Connections that are open.",
            Double(statistics.connectionsOpen)
        )
        page.gauge(
            "subledger_requests_suspended",
            "Requests that wait for an answer.",
            Double(statistics.requestsSuspended)
        )
        page.family(
            "subledger_http_refusals_total",
            "counter",
            "Requests that the server itself refused, by reason."
        )
        for (reason, count) in statistics.refusals.sorted(by: { $0.key.rawValue < $1.key.rawValue })
        {
            page.sample(
                "subledger_http_refusals_total",
                [("reason", reason.rawValue)],
                Double(count)
            )
        }
    }
}
