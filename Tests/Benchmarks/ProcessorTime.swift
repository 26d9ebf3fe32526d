internal import Glibc
internal import Postgres

/// Processor time used up to now, in seconds.
///
/// Other work on the same machine hardly disturbs it, which a clock on the wall cannot say.
struct ProcessorTime {
    /// Of this process, all its threads.
    var own: Double
    /// Of the server, which runs on the same machine: its processes, and those that have ended.
    var server = 0.0

    /// Reads both; the session that asks counts too.
    init(_ connection: Connection) throws {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        own = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
        let rows = try connection.query("select pid, pg_backend_pid() from pg_stat_activity")
        var parent: Int64?
        for row in 0..<rows.count {
            guard let pid = rows.int(row, 0), let fields = Self.fields(of: pid) else { continue }
            server += Self.ticks(fields, 12)
            if pid == rows.int(row, 1), fields.count > 2 { parent = Int64(fields[2]) }
        }
        // Of the children that have ended their parent knows.
        if let parent, let fields = Self.fields(of: parent) {
            server += Self.ticks(fields, 12) + Self.ticks(fields, 14)
        }
    }

    /// The most memory that this process ever had.
    static var peakMebibytes: Int {
        var usage = rusage()
        guard unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
        return usage.ru_maxrss / 1024
    }

    private init(own: Double, server: Double) {
        self.own = own
        self.server = server
    }

    /// What was used since.
    static func - (later: ProcessorTime, earlier: ProcessorTime) -> ProcessorTime {
        ProcessorTime(own: later.own - earlier.own, server: later.server - earlier.server)
    }

    /// The fields of a process after its name, of which the first closes the bracket around it.
    private static func fields(of process: Int64) -> [Substring]? {
        guard let text = FileSystem.text("/proc/\(process)/stat"),
            let bracket = text.lastIndex(of: ")")
        else { return nil }
        return text[bracket...].split(separator: " ")
    }

    /// Ticks of user and of system time, which follow each other.
    private static func ticks(_ fields: [Substring], _ place: Int) -> Double {
        guard fields.count > place + 1 else { return 0 }
        return ((Double(fields[place]) ?? 0) + (Double(fields[place + 1]) ?? 0)) / 100
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }
}
