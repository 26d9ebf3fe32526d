internal import AppStore
internal import Crypto
internal import EventLog
package import Ledger
package import Postgres
internal import Projections
internal import Schema

/// Looks at everything that an installation needs, and says of each thing how it is.
///
/// It changes nothing: what it tries to change is meant to be refused, and rolled back.
package struct Doctor {
    /// How long before its end an anchor is worth a warning.
    static let anchorNoticeDays: Int64 = 30
    /// The skews of our clock, in milliseconds, from which on there is a warning and a failure.
    static let skewMilliseconds: (warn: Int64, fail: Int64) = (1000, 60_000)
    /// How many batches at the end of the log are hashed again.
    static let tailBatches: Int64 = 50
    /// The oldest PostgreSQL that will do.
    static let serverVersionMin: Int64 = 150_000

    let connection: Connection
    private let isEmbedded: Bool
    let acceptance: Acceptance
    let now: @Sendable () -> Timestamp
    let silenceLimits: Silence.Limits
    let destinations: [String]

    /// Makes a doctor.
    ///
    /// - Parameters:
    ///   - connection: a session as `serve` would log in.
    ///   - isEmbedded: whether it is the embedded server's, who has one login only.
    ///   - acceptance: the apps and anchors that are configured.
    ///   - now: our clock.
    ///   - silenceLimits: for how long nothing may come.
    ///   - destinations: the names of those that notifications are forwarded to.
    package init(
        _ connection: Connection,
        isEmbedded: Bool,
        acceptance: Acceptance,
        now: @escaping @Sendable () -> Timestamp,
        silenceLimits: Silence.Limits = Silence.Limits(),
        destinations: [String] = []
    ) {
        self.connection = connection
        self.isEmbedded = isEmbedded
        self.acceptance = acceptance
        self.now = now
        self.silenceLimits = silenceLimits
        self.destinations = destinations
    }

    /// Looks at everything; a check that fails for an error of the database says so in its line.
    package func examine() -> [Diagnosis] {
        var result: [Diagnosis] = []
        result += attempt("version") { [try version()] }
        result += attempt("durability") { try durability() }
        let fit = attempt("schema") { [try schema()] }
        result += fit
        result += attempt("clock") { [try clock()] }
        result += anchors()
        // Without the tables each of the others would fail for the same reason.
        guard fit.allSatisfy({ $0.level == .ok }) else { return result }
        result += attempt("login") { [try login()] }
        result += attempt("privileges") { [try privileges()] }
        result += attempt("immutability") { try immutability() }
        result += attempt("chain") { [try chain()] }
        result += attempt("epoch") { [try epoch()] }
        result += attempt("read_models") { [try readModelVersions()] }
        result += attempt("projection") { [try projection()] }
        result += attempt("parked") { [try parked()] }
        result += attempt("quarantine") { [try quarantine()] }
        result += attempt("refusals") { [try refusals()] }
        result += attempt("deliveries") { try deliveries() }
        result += attempt("forward") { try forwarding() }
        result += attempt("apple_deliveries") { try appleDeliveries() }
        result += attempt("extensions") { try extensions() }
        return result
    }

    private func attempt(_ name: String, _ check: () throws -> [Diagnosis]) -> [Diagnosis] {
        do { return try check() } catch {
            return [
                Diagnosis(
                    name,
                    .fail,
                    "it could not be looked at: \(error)",
                    remedy: "the server's log says more; a role that lacks a privilege shows above"
                )
            ]
        }
    }

    // MARK: - The server

    private func version() throws -> Diagnosis {
        let rows = try connection.query(
            "select current_setting('server_version_num')::bigint,"
                + " current_setting('server_version')"
        )
        let text = "PostgreSQL \(rows.text(0, 1) ?? "?")"
        guard (rows.int(0, 0) ?? 0) >= Self.serverVersionMin else {
            return Diagnosis(
                "version",
                .fail,
                "\(text) is too old",
                remedy: "PostgreSQL 15 or newer is needed"
            )
        }
        return Diagnosis("version", .ok, text)
    }

    private func durability() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select name, setting from pg_settings
            where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name
            """
        )
        return (0..<rows.count).map { row in
            let name = rows.text(row, 0) ?? ""
            let setting = rows.text(row, 1) ?? ""
            if name == "synchronous_commit" {
                // The appender turns it on for itself, so this is about everybody else.
                return setting == "off"
                    ? Diagnosis(
                        name,
                        .warn,
                        "off; appends turn it on for themselves, tokens and notes do not",
                        remedy: "set synchronous_commit = on"
                    ) : Diagnosis(name, .ok, setting)
            }
            return setting == "on"
                ? Diagnosis(name, .ok, "on")
                : Diagnosis(
                    name,
                    .fail,
                    "\(setting): after a crash the server may have lost what it confirmed",
                    remedy: "set \(name) = on in postgresql.conf and reload"
                )
        }
    }

    private func schema() throws -> Diagnosis {
        do {
            let migrator = try Migrator(connection, extra: ReadModels.migrations)
            try migrator.check()
            let newest = Schema.migrations.map(\.number).max() ?? 0
            return Diagnosis("schema", .ok, "the log is at \(newest), the read models fit")
        } catch {
            guard error.code == .schema else { throw error }
            return Diagnosis("schema", .fail, error.message, remedy: "run: subledger migrate")
        }
    }

    private func clock() throws -> Diagnosis {
        let before = now()
        let rows = try connection.query("select clock_timestamp()")
        let after = now()
        let there = rows.instant(0, 0) ?? 0
        let here = (before.milliseconds + after.milliseconds) / 2
        // What the question itself took is no skew.
        let doubt = (after.milliseconds - before.milliseconds) / 2
        let skew = abs(there - here) - doubt
        let finding = "the database's clock is \(there - here) ms from ours"
        let remedy =
            "let both hosts follow the same time servers; a clock of ours that is behind "
            + "makes deliveries wait (503 signed_date_future)"
        if skew >= Self.skewMilliseconds.fail {
            return Diagnosis("clock", .fail, finding, remedy: remedy)
        }
        if skew >= Self.skewMilliseconds.warn {
            return Diagnosis("clock", .warn, finding, remedy: remedy)
        }
        return Diagnosis("clock", .ok, finding)
    }

    // MARK: - What is configured

    private func anchors() -> [Diagnosis] {
        var result: [Diagnosis] = []
        if acceptance.apps.isEmpty {
            result.append(
                Diagnosis(
                    "apps",
                    .warn,
                    "no app is configured, so every delivery would be refused",
                    remedy: "list your apps in \(Configuration.defaultPath), or name it by --config"
                )
            )
        } else {
            let names = acceptance.apps.map(\.bundleID).joined(separator: ", ")
            result.append(Diagnosis("apps", .ok, names))
        }
        let seconds = now().milliseconds / 1000
        for (_, name) in TrustAnchors.builtIn {
            result.append(Diagnosis("anchor", .ok, "\(name), known by its fingerprint"))
        }
        for anchor in acceptance.anchors.added {
            let left = (anchor.certificate.notAfterSeconds - seconds) / 86_400
            let end = Timestamp(milliseconds: anchor.certificate.notAfterSeconds * 1000)
            if left < Self.anchorNoticeDays {
                result.append(
                    Diagnosis(
                        "anchor",
                        .warn,
                        "\(anchor.name), for Sandbox only, ends \(end)",
                        remedy: "what was signed before stays verifiable; add the root that follows"
                    )
                )
            } else {
                result.append(
                    Diagnosis("anchor", .ok, "\(anchor.name), for Sandbox only, until \(end)")
                )
            }
        }
        return result
    }

    // MARK: - Rights

    /// The roles as the migration named them: a copy of a database may have another name.
    private func roles() throws -> Roles {
        let rows = try connection.query(
            "select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'ledger'"
        )
        let owner = rows.text(0, 0) ?? ""
        let suffix = "_owner"
        return Roles(
            prefix: owner.hasSuffix(suffix) ? String(owner.dropLast(suffix.count)) : owner
        )
    }

    private func login() throws -> Diagnosis {
        let standing = try ServerStanding(connection)
        if isEmbedded {
            return Diagnosis("login", .ok, "the embedded server's own, stepping down to each role")
        }
        if standing.isSuperuser || standing.isOwner {
            let what = standing.isSuperuser ? "a superuser" : "the owner of the log"
            return Diagnosis(
                "login",
                .warn,
                "\(standing.login) is \(what) and could change the log; serve refuses it",
                remedy: "subledger migrate --print-login NAME prints how to make one that may not"
            )
        }
        let roles = try roles()
        let wanted = [roles.appender, roles.projector, roles.reader, roles.auditor]
        let rows = try connection.query(
            """
            select name from unnest($1::text[]) as name
            where not pg_has_role(session_user, name, 'usage') order by name
            """,
            [.textArray(wanted)]
        )
        let missing = (0..<rows.count).compactMap { rows.text($0, 0) }
        guard missing.isEmpty else {
            return Diagnosis(
                "login",
                .fail,
                "\(standing.login) lacks \(missing.joined(separator: ", "))",
                remedy: "grant \(missing.joined(separator: ", ")) to \(standing.login)"
            )
        }
        return Diagnosis("login", .ok, "\(standing.login) may do what its roles may")
    }

    /// Nobody but the owner, who is refused by the triggers, may even try to change what is immutable.
    private func privileges() throws -> Diagnosis {
        let rows = try connection.query(
            """
            select distinct coalesce(pg_get_userbyid(nullif(acl.grantee, 0)), 'everybody')
                || ' may ' || lower(acl.privilege_type) || ' ' || relation::text
            from (\(Self.immutableTables)) as tables
            join pg_class on pg_class.oid = relation,
                aclexplode(relacl) as acl
            where acl.privilege_type in ('UPDATE', 'DELETE', 'TRUNCATE')
                and acl.grantee <> relowner
            order by 1 limit 3
            """
        )
        guard rows.count == 0 else {
            let found = (0..<rows.count).compactMap { rows.text($0, 0) }.joined(separator: "; ")
            return Diagnosis(
                "privileges",
                .fail,
                found,
                remedy: "revoke it; nothing of this program needs it, and the triggers still refuse"
            )
        }
        return Diagnosis("privileges", .ok, "no role may change or delete what is immutable")
    }

    // MARK: - The log

    /// The tables of the log that never change, partitions with them, as `relation`.
    ///
    /// Every table that is not listed here as one that changes is immutable.
    private static let immutableTables = """
        select c.oid::regclass as relation from pg_class c
        left join pg_inherits on inhrelid = c.oid
        left join pg_class parent on parent.oid = inhparent
        where c.relnamespace = 'ledger'::regnamespace and c.relkind in ('r', 'p')
            and coalesce(parent.relname, c.relname) not in
                ('head', 'mark', 'poll', 'fact', 'schema_lock', 'refusal',
                'forward', 'forward_stream',
                    'history_window', 'send_attempt', 'turn')
        """

    private func immutability() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select relation::text from (\(Self.immutableTables)) as tables
            where (
                select count(*) from pg_trigger
                where tgrelid = relation and tgenabled = 'A'
                    and tgname in ('refuse_row', 'refuse_statement')
            ) < 2
            order by 1
            """
        )
        let bare = (0..<rows.count).compactMap { rows.text($0, 0) }
        let remedy =
            "somebody dropped or disabled it: run subledger audit verify, find out who, and put "
            + "it back as schema/migrations has it"
        guard bare.isEmpty else {
            return [
                Diagnosis(
                    "immutability",
                    .fail,
                    "no trigger keeps these from being changed: "
                        + bare.prefix(5).joined(separator: ", "),
                    remedy: remedy
                )
            ]
        }
        for statement in ["update ledger.event set kind = kind", "delete from ledger.event"] {
            if let obeyed = try obeys(statement) {
                return [Diagnosis("immutability", .fail, obeyed, remedy: remedy)]
            }
        }
        return [
            Diagnosis(
                "immutability",
                .ok,
                "an update and a delete were refused; every trigger is in its place"
            )
        ]
    }

    /// Tries what must be refused, on no row and in a transaction that is rolled back.
    ///
    /// - Returns: what happened instead; nil when it was refused as it should be.
    private func obeys(_ statement: String) throws -> String? {
        try connection.execute("begin; set local lock_timeout = '2s'")
        defer { try? connection.execute("rollback") }
        do {
            try connection.execute("\(statement) where false")
            return "“\(statement)” was obeyed"
        } catch {
            // 42501: the privilege is missing, 2F002: the trigger refuses.
            guard error.sqlState == "42501" || error.sqlState == "2F002" else { throw error }
            return nil
        }
    }

    private func chain() throws -> Diagnosis {
        let report = try LogAudit(connection).runTail(batches: Self.tailBatches)
        guard let difference = report.difference else {
            return Diagnosis(
                "chain",
                .ok,
                "the head is at \(report.head.position); the last \(report.events) events are "
                    + "as they were written"
            )
        }
        return Diagnosis(
            "chain",
            .fail,
            "position \(difference.position): \(difference.description)",
            remedy:
                "the log is not as it was written: stop, keep a copy, run subledger audit verify"
        )
    }
}
