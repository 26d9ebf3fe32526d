/// Sends rows into a COPY that `Connection.copyIn` began.
public final class CopyWriter {
    /// How much is gathered before it is sent: 1 MiB, past which nothing was gained.
    static let chunkSizeBytes = 1 << 20

    private let connection: Connection
    private var hasHeader = false

    /// The rows not yet sent; write into it, then call `flushIfFull()` now and then.
    public var rows = RowBuffer()

    init(_ connection: Connection) { self.connection = connection }

    /// Sends the buffer when it holds a chunk's worth.
    public func flushIfFull() throws(PostgresError) {
        if rows.byteCount >= Self.chunkSizeBytes { try flush() }
    }

    /// Sends whole rows that were encoded elsewhere.
    public func write(_ buffer: RowBuffer) throws(PostgresError) {
        try flush()
        try sendHeader()
        if buffer.byteCount > 0 { try connection.putCopyData(buffer.bytes) }
    }

    func finish() throws(PostgresError) {
        try flush()
        try sendHeader()
        try connection.putCopyData([0xFF, 0xFF])
    }

    private func flush() throws(PostgresError) {
        try sendHeader()
        guard rows.byteCount > 0 else { return }
        try connection.putCopyData(rows.bytes)
        rows.removeAll()
    }

    private func sendHeader() throws(PostgresError) {
        guard !hasHeader else { return }
        hasHeader = true
        try connection.putCopyData(
            Array("PGCOPY\n".utf8)[...] + [0xFF, 0x0D, 0x0A, 0x00, 0, 0, 0, 0, 0, 0, 0, 0]
        )
    }
}
