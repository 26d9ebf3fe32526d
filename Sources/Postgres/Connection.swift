internal import CPostgres

/// One session with a PostgreSQL server, whose calls block.
///
/// The object owns its `PGconn` and frees it with itself. It is not `Sendable`: one thread uses it
/// at a time, and the compiler checks that.
@safe public final class Connection {
    private let handle: OpaquePointer
    /// Whether it is known to be over though libpq has not read its end yet.
    private var isLost = false
    /// The names of the statements that the server has prepared, by their text.
    private var prepared: [String: String] = [:]
    /// How many statements are kept prepared; what comes later is planned each time.
    private static let preparedMax = 64
    /// How many values a statement may have; the protocol counts them in 16 bits.
    private static let bindsMax = 65_535

    /// Opens a session and sets what every session of this program relies on: UTC, no notices.
    ///
    /// - Parameter conninfo: libpq's `key=value` form or a `postgresql://` URL.
    /// - Throws: `PostgresError` with `code == .connection` when no session could be opened; what
    ///   it says of a conninfo that cannot be read quotes nothing of it.
    public init(_ conninfo: String) throws(PostgresError) {
        if let objection = Self.objection(to: conninfo) {
            throw PostgresError(code: .connection, message: objection)
        }
        guard let handle = unsafe Self.connect(conninfo) else {
            throw PostgresError(code: .connection, message: "libpq is out of memory")
        }
        unsafe self.handle = handle
        guard unsafe PQstatus(handle) == CONNECTION_OK else {
            // The object is whole here, so `deinit` finishes the failed PGconn.
            throw connectionError
        }
        unsafe PQsetNoticeReceiver(handle, { _, _ in }, nil)
        try execute("set time zone 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'iso_8601'")
    }

    deinit { unsafe PQfinish(handle) }

    /// Lends the session's handle to another file of this module.
    @unsafe func withHandle<Value>(_ body: (OpaquePointer) -> Value) -> Value {
        unsafe body(handle)
    }

    /// Whether the session is still usable; false after a lost connection.
    public var isAlive: Bool { !isLost && (unsafe PQstatus(handle) == CONNECTION_OK) }

    /// Whether a transaction block is open, failed or not.
    public var isInTransaction: Bool {
        unsafe PQtransactionStatus(handle) != PQTRANS_IDLE
    }

    /// The server's version as libpq counts it, 150018 for 15.18.
    public var serverVersion: Int { Int(unsafe PQserverVersion(handle)) }

    /// Runs one statement with binds and returns its rows.
    ///
    /// - Throws: `PostgresError`; the transaction around it, if any, is then to be rolled back.
    @discardableResult
    public func query(_ sql: String, _ binds: [Bind] = []) throws(PostgresError) -> Rows {
        try unsafe send(binds) { (values) in
            unsafe PQexecParams(
                handle,
                sql,
                Int32(binds.count),
                values.types,
                values.pointers,
                values.lengths,
                values.formats,
                1
            )
        }
    }

    /// Runs one statement with binds, which the server plans at the first times only.
    ///
    /// For statements that are asked again and again and take longer to plan than to run. The text
    /// is what tells one from another, so it must not hold values, nor the binds change their type.
    ///
    /// - Throws: as `query`.
    public func query(prepared sql: String, _ binds: [Bind]) throws(PostgresError) -> Rows {
        guard let name = try name(ofPrepared: sql, binds) else { return try query(sql, binds) }
        return try unsafe send(binds) { (values) in
            unsafe PQexecPrepared(
                handle,
                name,
                Int32(binds.count),
                values.pointers,
                values.lengths,
                values.formats,
                1
            )
        }
    }

    /// Runs a prepared statement and hands over its rows as they come, each in the form of a COPY.
    ///
    /// In memory is one row at a time. The session must not be used by `row`, and the reader handed to
    /// it is valid during that call only.
    ///
    /// - Throws: as `query`, and what `row` throws; the rest of the rows is read and dropped then.
    public func forEachRow<Failure: Error>(
        prepared sql: String,
        _ binds: [Bind],
        row: (inout BinaryRow) throws(Failure) -> Void
    ) throws {
        let name = try name(ofPrepared: sql, binds)
        let sent = try unsafe withValues(of: binds) { values in
            if let name {
                return unsafe PQsendQueryPrepared(
                    handle,
                    name,
                    Int32(binds.count),
                    values.pointers,
                    values.lengths,
                    values.formats,
                    1
                )
            }
            return unsafe PQsendQueryParams(
                handle,
                sql,
                Int32(binds.count),
                values.types,
                values.pointers,
                values.lengths,
                values.formats,
                1
            )
        }
        guard sent == 1 else { throw connectionError }
        _ = unsafe PQsetSingleRowMode(handle)
        var bytes: [UInt8] = []
        var failure: (any Error)?
        while let result = unsafe PQgetResult(handle) {
            let rows = unsafe Rows(adopting: result)
            guard failure == nil else { continue }
            do {
                guard rows.status == PGRES_SINGLE_TUPLE else {
                    _ = try checked(rows)
                    continue
                }
                bytes.removeAll(keepingCapacity: true)
                rows.appendRow(0, to: &bytes)
                try unsafe bytes.withUnsafeBytes { bytes in
                    var reader = unsafe BinaryRow(bytes)
                    if try reader.beginRow() { try row(&reader) }
                }
            } catch {
                failure = error
                if rows.status == PGRES_SINGLE_TUPLE { cancelStatement() }
            }
        }
        if let failure { throw failure }
        guard isAlive else { throw connectionError }
    }

    private func name(
        ofPrepared sql: String,
        _ binds: [Bind]
    ) throws(PostgresError) -> String? {
        if let name = prepared[sql] { return name }
        guard prepared.count < Self.preparedMax else { return nil }
        let name = "q\(prepared.count)"
        let types = binds.map(\.oid)
        let result = unsafe PQprepare(handle, name, sql, Int32(types.count), types)
        _ = try checked(unsafe Rows(adopting: result))
        prepared[sql] = name
        return name
    }

    /// Binds in the form of libpq, for the length of a call.
    @unsafe private struct BindValues {
        var types: [Oid]
        var pointers: [UnsafePointer<CChar>?]
        var lengths: [Int32]
        var formats: [Int32]
    }

    @unsafe private func send(
        _ binds: [Bind],
        _ body: (borrowing BindValues) -> OpaquePointer?
    ) throws(PostgresError) -> Rows {
        let result: OpaquePointer? = try unsafe withValues(of: binds) { unsafe body($0) }
        return try checked(unsafe Rows(adopting: result))
    }

    @unsafe private func withValues<Value>(
        of binds: [Bind],
        _ body: (borrowing BindValues) -> Value
    ) throws(PostgresError) -> Value {
        if binds.contains(where: \.isCutByZero) {
            throw PostgresError(
                code: .server,
                sqlState: "22021",
                message: "a text value holds U+0000, which PostgreSQL cannot represent"
            )
        }
        guard binds.count <= Self.bindsMax else {
            throw PostgresError(
                code: .server,
                sqlState: "54023",
                message: "a statement has \(binds.count) values, and may have \(Self.bindsMax)"
            )
        }
        let encoded = binds.map(\.encoded)
        var flat: [UInt8] = []
        flat.reserveCapacity(encoded.reduce(0) { $0 + ($1?.count ?? 0) + 1 })
        var offsets: [Int?] = []
        for value in encoded {
            guard let value else {
                offsets.append(nil)
                continue
            }
            offsets.append(flat.count)
            flat.append(contentsOf: value)
            flat.append(0)
        }
        return unsafe flat.withUnsafeBytes { bytes in
            let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let values = unsafe BindValues(
                types: binds.map(\.oid),
                pointers: offsets.map { offset in
                    unsafe offset.flatMap { unsafe base?.advanced(by: $0) }
                },
                lengths: encoded.map { Int32($0?.count ?? 0) },
                formats: binds.map(\.format)
            )
            return unsafe body(values)
        }
    }

    /// Runs one or more statements without binds; their rows are dropped.
    public func execute(_ sql: String) throws(PostgresError) {
        let result = unsafe PQexec(handle, sql)
        _ = try checked(unsafe Rows(adopting: result))
    }

    /// Runs `body` between BEGIN and COMMIT.
    ///
    /// Any error rolls back and is thrown on. A connection lost during COMMIT is thrown as
    /// `.connection`: the outcome is unknown. A statement's error that `body` kept to itself has
    /// undone the transaction all the same, and is thrown with SQLSTATE 25P02.
    public func transaction<Value, Failure: Error>(
        _ begin: String = "begin",
        _ body: (Connection) throws(Failure) -> Value
    ) throws -> Value {
        try execute(begin)
        let value: Value
        do {
            value = try body(self)
        } catch {
            // A rollback that fails has lost the session, and with it the transaction.
            try? execute("rollback")
            throw error
        }
        // PostgreSQL answers COMMIT of a failed transaction with ROLLBACK and no error.
        guard unsafe PQtransactionStatus(handle) != PQTRANS_INERROR else {
            try execute("rollback")
            throw PostgresError(
                code: .server,
                sqlState: "25P02",
                message: "a statement of the transaction failed, so it was rolled back"
            )
        }
        try execute("commit")
        return value
    }

    /// Streams `copy … to stdout (format binary)`, one call of `row` for each row.
    ///
    /// The reader handed to `row` is valid during that call only.
    public func copyOut<Failure: Error>(
        _ sql: String,
        row: (inout BinaryRow) throws(Failure) -> Void
    ) throws {
        let start = unsafe Rows(adopting: PQexec(handle, sql))
        try check(start, expecting: PGRES_COPY_OUT)
        var isFirst = true
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let count = unsafe PQgetCopyData(handle, &buffer, 0)
            guard count > 0 else {
                if count == -2 {
                    throw connectionError
                }
                break
            }
            defer { unsafe PQfreemem(buffer) }
            do {
                var reader = unsafe BinaryRow(
                    UnsafeRawBufferPointer(start: buffer, count: Int(count))
                )
                // The 19-byte header comes with the first row.
                if isFirst { try reader.skipHeader() }
                isFirst = false
                if try reader.beginRow() { try row(&reader) }
            } catch {
                unsafe drainCopyOut()
                throw error
            }
        }
        try finishCopy()
    }

    /// Runs `copy … from stdin (format binary)`; `body` writes rows with the writer it is handed.
    ///
    /// - Returns: what `body` returned.
    public func copyIn<Value>(
        _ sql: String,
        _ body: (CopyWriter) throws -> Value
    ) throws -> Value {
        let start = unsafe Rows(adopting: PQexec(handle, sql))
        try check(start, expecting: PGRES_COPY_IN)
        let writer = CopyWriter(self)
        let value: Value
        do {
            value = try body(writer)
            try writer.finish()
        } catch {
            unsafe PQputCopyEnd(handle, "given up by the client")
            try? finishCopy()
            throw error
        }
        guard unsafe PQputCopyEnd(handle, nil) == 1 else {
            throw connectionError
        }
        try finishCopy()
        return value
    }

    /// Sends bytes of a COPY that `copyIn` began.
    func putCopyData(_ bytes: ArraySlice<UInt8>) throws(PostgresError) {
        precondition(bytes.count < 1 << 30, "one message of a COPY holds less than 1 GiB")
        let sent = unsafe bytes.withUnsafeBytes { raw in
            unsafe PQputCopyData(
                handle,
                raw.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(raw.count)
            )
        }
        guard sent == 1 else {
            throw connectionError
        }
    }

    /// Reads what follows the end of a COPY and throws the server's verdict.
    private func finishCopy() throws(PostgresError) {
        var failure: PostgresError?
        while let result = unsafe PQgetResult(handle) {
            do {
                _ = try checked(unsafe Rows(adopting: result))
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        guard isAlive else {
            throw connectionError
        }
    }

    /// Reads a COPY to its end after the caller gave up, so that the session stays usable.
    @unsafe private func drainCopyOut() {
        cancelStatement()
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            guard unsafe PQgetCopyData(handle, &buffer, 0) > 0 else { break }
            unsafe PQfreemem(buffer)
        }
        try? finishCopy()
    }

    /// Has the server end the statement under way, whose rest nobody wants.
    private func cancelStatement() {
        guard let cancel = unsafe PQgetCancel(handle) else { return }
        var message = [CChar](repeating: 0, count: 256)
        _ = unsafe PQcancel(cancel, &message, 256)
        unsafe PQfreeCancel(cancel)
    }

    private func checked(_ rows: Rows) throws(PostgresError) -> Rows {
        switch rows.status {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: return rows
        default: throw failure(of: rows)
        }
    }

    private func check(_ rows: Rows, expecting status: ExecStatusType) throws(PostgresError) {
        guard rows.status == status else { throw failure(of: rows) }
    }

    /// Ends a COPY that nobody asked for, which would otherwise hold the session for ever.
    private func leaveCopy(begunBy rows: Rows) {
        switch rows.status {
        case PGRES_COPY_IN:
            unsafe PQputCopyEnd(handle, "not expected by the client")
            try? finishCopy()
        case PGRES_COPY_OUT: unsafe drainCopyOut()
        default: break
        }
    }

    private func failure(of rows: Rows) -> PostgresError {
        if let state = rows.sqlState {
            // A fatal error ends the session, though libpq sees that only at the next call; the
            // caller must not think it can go on with it.
            if rows.isFatal { isLost = true }
            return PostgresError(
                code: isAlive ? .server : .connection,
                sqlState: state,
                message: rows.errorMessage
            )
        }
        if rows.status == PGRES_FATAL_ERROR {
            // Not the server said this but libpq, which could not send or not receive. It may take the
            // session for alive until it reads its end.
            isLost = true
            return PostgresError(code: .connection, message: connectionError.message)
        }
        leaveCopy(begunBy: rows)
        return PostgresError(
            code: isAlive ? .unexpectedResult : .connection,
            message: isAlive
                ? "the server answered with \(rows.status)" : connectionError.message
        )
    }

    /// What libpq says of the session, as an error.
    private var connectionError: PostgresError {
        var text = unsafe String(cString: PQerrorMessage(handle))
        while text.last?.isWhitespace == true { text.removeLast() }
        return PostgresError(
            code: .connection,
            message: text.isEmpty ? "the connection was lost" : text
        )
    }
}
