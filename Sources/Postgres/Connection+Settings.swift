internal import CPostgres
internal import Glibc

extension Connection {
    /// What a session is opened with unless the caller's conninfo says otherwise.
    ///
    /// Without the limits a server that vanished without a word (a dead host, a cut cable) would
    /// hold a thread for two hours, which is the system's own patience.
    private static let defaults: [(keyword: String, variable: String?, value: String)] = [
        ("connect_timeout", "PGCONNECT_TIMEOUT", "10"),
        ("keepalives", nil, "1"),
        ("keepalives_idle", nil, "30"),
        ("keepalives_interval", nil, "10"),
        ("keepalives_count", nil, "3"),
        ("tcp_user_timeout", nil, "60000"),
        ("client_encoding", nil, "UTF8"),
        ("fallback_application_name", nil, "subledger"),
    ]

    /// Opens a session; the result is to be finished even where it failed.
    @unsafe static func connect(_ conninfo: String) -> OpaquePointer? {
        // The last of equal keywords counts, and a variable of the user's counts like the conninfo.
        var pairs = defaults.filter { setting in
            setting.variable.map { unsafe getenv($0) == nil } ?? true
        }.map { ($0.keyword, $0.value) }
        pairs.append(("dbname", conninfo))
        let keywords = unsafe pairs.map { unsafe strdup($0.0) }
        let values = unsafe pairs.map { unsafe strdup($0.1) }
        defer { unsafe (keywords + values).withUnsafeBufferPointer { unsafe freeAll($0) } }
        let keywordList = unsafe keywords.map { unsafe UnsafePointer($0) } + [nil]
        let valueList = unsafe values.map { unsafe UnsafePointer($0) } + [nil]
        return unsafe PQconnectdbParams(keywordList, valueList, 1)
    }

    /// What libpq finds wrong with the form of a conninfo; nil where it can be read.
    ///
    /// Without what libpq quotes of it, which may be a password.
    static func objection(to conninfo: String) -> String? {
        var message: UnsafeMutablePointer<CChar>?
        if let options = unsafe PQconninfoParse(conninfo, &message) {
            unsafe PQconninfoFree(options)
            return nil
        }
        defer { unsafe PQfreemem(message) }
        let text = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
        let what = text.prefix { $0 != "\"" }.split(whereSeparator: \.isWhitespace)
        return "the connection string cannot be read: \(what.joined(separator: " ")) … (in a URL a "
            + "%, @, / or : of the password is written %25, %40, %2F or %3A)"
    }

    /// libpq's `key=value` form, with values quoted so that spaces and quotes stay what they are.
    public static func conninfo(_ settings: [(keyword: String, value: String)]) -> String {
        settings.map { setting in
            var quoted = ""
            for character in setting.value.unicodeScalars {
                if character == "'" || character == "\\" { quoted += "\\" }
                quoted.unicodeScalars.append(character)
            }
            return "\(setting.keyword)='\(quoted)'"
        }.joined(separator: " ")
    }

    /// A handle that ends the statement under way, from any thread.
    ///
    /// The statement then fails with SQLSTATE 57014 and the session stays usable.
    public func canceller() -> Canceller {
        unsafe withHandle { unsafe Canceller(adopting: PQgetCancel($0)) }
    }
}

/// Ends the statement that a session is running, on behalf of another thread.
@safe public final class Canceller: @unchecked Sendable {
    // Safety: the PGcancel is never changed after it was made, and libpq documents `PQcancel` as
    // safe from other threads and signal handlers.
    private let handle: OpaquePointer?

    init(adopting handle: OpaquePointer?) { unsafe self.handle = handle }

    deinit { unsafe PQfreeCancel(handle) }

    /// Asks the server to end the statement; false when it could not be asked.
    @discardableResult
    public func cancel() -> Bool {
        guard unsafe handle != nil else { return false }
        var message = [CChar](repeating: 0, count: 256)
        return unsafe PQcancel(handle, &message, Int32(message.count)) == 1
    }
}
