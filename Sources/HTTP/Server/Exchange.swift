internal import CMicroHTTPD
internal import Glibc

/// One request and its answer, on the thread of its connection.
final class Exchange {
    private enum Stage {
        /// The request line is there.
        case begun
        /// The headers are there.
        case receiving
        /// A handler's later answer is awaited.
        case waiting(AnswerSlot)
        case answered
    }

    private let core: ServerCore
    private let connectionRecord: ConnectionRecord
    private let target: [UInt8]
    private let began = MonotonicClock.now
    private let id: String

    private var stage = Stage.begun
    private var head: RequestHead?
    private var admission: Admission?
    private var body: [UInt8] = []
    private var bytesReceived = 0
    private var isInFlight = false
    private var pipe: BodyPipe?
    private var status: Int?
    private var refusal: Refusal?

    /// Counted up by the stream, which runs on the same thread.
    var bytesSent = 0

    init(core: ServerCore, connectionRecord: ConnectionRecord, target: [UInt8]) {
        self.core = core
        self.connectionRecord = connectionRecord
        self.target = target
        id = core.makeRequestID()
        connectionRecord.enter(
            .receiving,
            until: began + core.configuration.requestDeadline.nanoseconds
        )
    }

    /// libmicrohttpd has something: the headers, a part of the body, or its end.
    ///
    /// - Returns: false where the connection is to be cut.
    @unsafe func proceed(
        _ connection: OpaquePointer,
        call: HandlerCall
    ) -> Bool {
        switch stage {
        case .begun:
            stage = .receiving
            return unsafe headersArrived(connection, call)
        case .receiving:
            if unsafe !call.body.isEmpty { return unsafe bodyArrived(call.body) }
            return unsafe requestArrived(connection)
        case .waiting(let slot):
            let handle = unsafe ConnectionHandle(connection)
            guard let response = slot.takeOrSuspend(handle) else { return true }
            core.counters.addSuspended(-1)
            return unsafe send(response, on: connection)
        case .answered:
            return true
        }
    }

    @unsafe private func headersArrived(_ connection: OpaquePointer, _ call: HandlerCall) -> Bool {
        let head = unsafe RequestHead(connection, call, target: target)
        self.head = head
        guard core.gate.enter() else {
            return unsafe refuse(.stopping, on: connection)
        }
        isInFlight = true
        let admission = Admission(head, router: core.router, configuration: core.configuration)
        self.admission = admission
        body.reserveCapacity(admission.expectedBodyBytes)
        if case .refuse(let refusal, let allow) = admission.verdict, admission.isAtOnce {
            return unsafe refuse(refusal, allow: allow, on: connection)
        }
        return true
    }

    @unsafe private func bodyArrived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let admission else { return false }
        bytesReceived += bytes.count
        let limit = admission.bodyLimitBytes
        if bytesReceived <= limit {
            if case .serve = admission.verdict { unsafe body.append(contentsOf: bytes) }
            return true
        }
        // An answer cannot be given in the midst of a chunked body: the rest is read, and dropped.
        if case .serve = admission.verdict {
            self.admission?.verdict = .refuse(.bodyTooLarge, allow: [])
            body = []
        }
        guard bytesReceived <= limit + core.configuration.discardLimitBytes else {
            refusal = .bodyTooLarge
            return false
        }
        return true
    }

    @unsafe private func requestArrived(_ connection: OpaquePointer) -> Bool {
        guard let admission, let head, let target = admission.target else {
            guard case .refuse(let refusal, let allow) = admission?.verdict else { return false }
            return unsafe refuse(refusal, allow: allow, on: connection)
        }
        switch admission.verdict {
        case .refuse(let refusal, let allow):
            return unsafe refuse(refusal, allow: allow, on: connection)
        case .serve(let route, let parameters):
            connectionRecord.enter(.answering(nil), until: .max)
            let request = HTTPRequest(
                method: head.method,
                target: target,
                headers: head.headers,
                body: body,
                peer: connectionRecord.address,
                route: route.template.description,
                parameters: parameters,
                id: id
            )
            body = []
            switch route.handler(request) {
            case .answer(let response):
                return unsafe send(response, on: connection)
            case .later(let pending):
                return unsafe wait(for: pending.slot, on: connection)
            }
        }
    }

    @unsafe private func wait(for slot: AnswerSlot, on connection: OpaquePointer) -> Bool {
        stage = .waiting(slot)
        connectionRecord.enter(
            .answering(slot),
            until: MonotonicClock.now + core.configuration.answerDeadline.nanoseconds
        )
        // After the record knows of it: a server that begins to stop looks there.
        if !core.gate.isOpen, let response = slot.whenStopping { _ = slot.complete(response) }
        core.counters.addSuspended(1)
        let handle = unsafe ConnectionHandle(connection)
        guard let response = slot.takeOrSuspend(handle) else { return true }
        core.counters.addSuspended(-1)
        return unsafe send(response, on: connection)
    }

    @unsafe private func refuse(
        _ refusal: Refusal,
        allow: [HTTPMethod] = [],
        on connection: OpaquePointer
    ) -> Bool {
        self.refusal = refusal
        var response = refusal.response()
        if !allow.isEmpty {
            response.headers["Allow"] = allow.map(\.rawValue).joined(separator: ", ")
        }
        return unsafe send(response, on: connection)
    }

    @unsafe private func send(_ wanted: HTTPResponse, on connection: OpaquePointer) -> Bool {
        stage = .answered
        var response = wanted
        if !response.isValid {
            refusal = .invalidAnswer
            response = Refusal.invalidAnswer.response()
        }
        if !core.gate.isOpen { response.closesConnection = true }
        let perBlock = core.configuration.sendDeadline.nanoseconds
        let outgoing: OutgoingResponse?
        switch response.body {
        case .bytes(let bytes):
            let blocks = UInt64(bytes.count / OutgoingResponse.blockBytes) + 1
            connectionRecord.enter(.sending(nil), until: MonotonicClock.now + blocks * perBlock)
            outgoing = OutgoingResponse(bytes)
            if head?.method != .head { bytesSent = bytes.count }
        case .stream(let source):
            pipe = source.pipe
            connectionRecord.enter(
                .sending(source.pipe),
                until: MonotonicClock.now + perBlock
            )
            let stream = unsafe OutgoingStream(
                source: source,
                connection: ConnectionHandle(connection),
                record: connectionRecord,
                blockNanoseconds: perBlock,
                exchange: self
            )
            outgoing = OutgoingResponse(stream)
        }
        guard let outgoing else { return false }
        outgoing.add("X-Request-ID", id)
        if response.closesConnection { outgoing.add("Connection", "close") }
        for field in response.headers { outgoing.add(field.name, field.value) }
        guard unsafe outgoing.queue(status: response.status, on: connection) else { return false }
        status = response.status
        return true
    }

    /// The request is over, in whichever way.
    @unsafe func end(_ connection: OpaquePointer, _ code: MHD_RequestTerminationCode) {
        switch stage {
        case .waiting(let slot):
            slot.end()
            core.counters.addSuspended(-1)
        case .begun, .receiving, .answered:
            break
        }
        pipe?.detach()
        let isComplete = code == .REQUEST_TERMINATED_COMPLETED_OK
        if status == nil {
            let given = Int(unsafe shim_answer_status(connection))
            if given != 0 {
                status = given
                refusal = .malformed
            }
        }
        let now = MonotonicClock.now
        let record = AccessRecord(
            requestID: id,
            method: head?.method ?? HTTPMethod(rawValue: "-"),
            route: admission?.route,
            status: status,
            isComplete: isComplete && status != nil,
            durationNanoseconds: now - began,
            bytesReceived: bytesReceived,
            bytesSent: bytesSent,
            peer: connectionRecord.address,
            refusal: refusal
        )
        core.counters.count(record)
        // A connection may be silent for as long as libmicrohttpd lets it, and only then begin.
        connectionRecord.enter(
            .receiving,
            until: now + core.configuration.requestDeadline.nanoseconds
                + UInt64(core.configuration.idleTimeoutSeconds) * 1_000_000_000
        )
        core.onAccess?(record)
        if isInFlight { core.gate.leave() }
    }
}
