internal import AppStore
internal import EventLog
internal import Ledger
internal import Postgres
internal import Projections

/// What goes on: read models, what waits, what was refused, what comes and what goes out.
extension Doctor {
    func readModelVersions() throws -> Diagnosis {
        let current = try Current.read(connection)
        let old = Catalogue.all.filter { projection in
            !current.contains {
                // Version 0 is empty as the migration made it, and taken over by whoever folds.
                $0.projection == projection.name
                    && ($0.version == 0
                        || $0.version == Int32(projection.version)
                            && $0.decoder == Int16(FactSource.current.version))
            }
        }.map { $0.name }
        guard old.isEmpty else {
            return Diagnosis(
                "read_models",
                .fail,
                "made by another version of this program: \(old.joined(separator: ", "))",
                remedy: "run: subledger rebuild"
            )
        }
        return Diagnosis("read_models", .ok, "made by this version of the program")
    }

    /// Whether something waits that nobody takes away within a moment.
    func projection() throws -> Diagnosis {
        let before = try waiting()
        guard !before.isEmpty else { return Diagnosis("projection", .ok, "nothing waits") }
        Sleep.milliseconds(1500)
        let still = before.intersection(try waiting())
        guard !still.isEmpty else { return Diagnosis("projection", .ok, "it keeps up") }
        let rows = try connection.query(
            "select count(*) from (select distinct stream, app_id from ledger.mark) m"
        )
        return Diagnosis(
            "projection",
            .warn,
            "\(rows.int(0, 0) ?? 0) subscriptions have events that the read models do not show",
            remedy: "is `subledger serve` running, and what does its log say? After a change of "
                + "rules or an import it takes a while"
        )
    }

    /// Some of the marks that wait to be folded.
    private func waiting() throws -> Set<String> {
        let rows = try connection.query(
            """
            select m.stream || ' ' || m.app_id || ' ' || m.position from ledger.mark m
            where not exists (
                select from read_model.parked p
                where p.stream = m.stream and p.app_id = m.app_id and p.position >= m.position)
            order by m.stream, m.app_id, m.position limit 100
            """
        )
        return Set((0..<rows.count).compactMap { rows.text($0, 0) })
    }

    func parked() throws -> Diagnosis {
        let streams = try ParkedStreams(connection).all()
        guard let first = streams.first else {
            return Diagnosis("parked", .ok, "no subscription is parked")
        }
        return Diagnosis(
            "parked",
            .warn,
            "\(streams.count) subscriptions could not be folded, such as \(first.key.stream): "
                + first.error,
            remedy: "subledger streams parked, and after the cause is gone: subledger streams retry"
        )
    }

    func quarantine() throws -> Diagnosis {
        let count = try Quarantine(connection).unresolvedCount()
        guard count > 0 else { return Diagnosis("quarantine", .ok, "nothing is left in it") }
        return Diagnosis(
            "quarantine",
            .warn,
            "\(count) genuine documents could not become events and nobody has dealt with them",
            remedy: "subledger quarantine list, then show, replay or dismiss"
        )
    }

    /// Strangers send all kinds of things; what claims to be for one of our apps is worth a look.
    func refusals() throws -> Diagnosis {
        let rows = try connection.query(
            """
            select reason, count(*), count(*) filter (where bundle_id = any($1::text[]))
            from ledger.refusal where refused_at > now() - interval '1 day'
            group by reason order by 3 desc, 2 desc
            """,
            [.textArray(acceptance.apps.map(\.bundleID))]
        )
        let total = (0..<rows.count).reduce(0) { $0 + (rows.int($1, 1) ?? 0) }
        let ours = (0..<rows.count).reduce(0) { $0 + (rows.int($1, 2) ?? 0) }
        guard ours > 0 else {
            return Diagnosis("refusals", .ok, "\(total) in the last day, none names an app of ours")
        }
        return Diagnosis(
            "refusals",
            .warn,
            "\(total) in the last day, of which \(ours) name an app of ours, most often for "
                + (rows.text(0, 0) ?? ""),
            remedy: "subledger refusals; in Sandbox a refused notification does not come again"
        )
    }

    /// An endpoint that nothing reaches looks healthy from inside.
    func deliveries() throws -> [Diagnosis] {
        let found = try Silence.all(connection)
        guard !found.isEmpty else {
            return [
                Diagnosis(
                    "deliveries",
                    .warn,
                    "no notification was ever stored",
                    remedy:
                        "enter the address in App Store Connect, and ask for a test notification"
                )
            ]
        }
        return found.map { silence in
            let finding = "\(silence.environment): \(silence.text)"
            guard let limit = silenceLimits.seconds(silence.environment) else {
                return Diagnosis("deliveries", .ok, finding)
            }
            guard silence.ageSeconds.map({ $0 > limit }) ?? true else {
                return Diagnosis("deliveries", .ok, finding)
            }
            return Diagnosis(
                "deliveries",
                .warn,
                "\(finding), and \(limit / 3600) hours are the limit",
                remedy: "does Apple reach the address? subledger refusals, the proxy's log, and a "
                    + "test notification tell; silence_hours sets the limit"
            )
        }
    }

    /// How many seconds the oldest event may wait for a destination before somebody should look.
    private static let forwardLagSeconds: Int64 = 600

    func forwarding() throws -> [Diagnosis] {
        let standings = try ForwardStanding.all(connection)
        var result = standings.map { standing -> Diagnosis in
            let name = standing.destination
            guard destinations.contains(name) else {
                return Diagnosis(
                    "forward",
                    .warn,
                    "\(name) is not in the configuration; it had got to \(standing.position)",
                    remedy: "nothing more is forwarded there; put it back, or leave it so"
                )
            }
            let trouble = standing.failure.map { ": \($0)" } ?? ""
            if standing.waitingStreams > 0 {
                return Diagnosis(
                    "forward",
                    .warn,
                    "\(name) has not taken something of \(standing.waitingStreams) subscriptions"
                        + trouble,
                    remedy: "its log says why; they are tried again until it answers 2xx"
                )
            }
            if standing.lagSeconds > Self.forwardLagSeconds || standing.attempts > 0 {
                return Diagnosis(
                    "forward",
                    .warn,
                    "\(name) lacks \(standing.lagEvents) events, the oldest of them "
                        + "\(standing.lagSeconds) s old\(trouble)",
                    remedy: standing.isForwarding
                        ? "is it reachable from here?" : "is `subledger serve` running?"
                )
            }
            return Diagnosis("forward", .ok, "\(name) has got to \(standing.position)")
        }
        let known = Set(standings.map(\.destination))
        for name in destinations where !known.contains(name) {
            result.append(
                Diagnosis(
                    "forward",
                    .warn,
                    "nothing was forwarded to \(name) yet",
                    remedy: "start `subledger serve` with this configuration"
                )
            )
        }
        return result
    }
}
