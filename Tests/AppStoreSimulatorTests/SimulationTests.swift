import AppStoreSimulator
import Testing

@Suite struct SimulationTests {
    static let options = Simulation.Options(subscriptions: 400, seed: 11)

    /// Everything that a simulation writes.
    struct Output {
        var lines: [[UInt8]] = []
        var rows: [TruthRow] = []
        var statistics = SimulationStatistics()

        init(_ options: Simulation.Options) {
            var lines: [[UInt8]] = []
            var rows: [TruthRow] = []
            statistics = Simulation(options).run(
                truth: { (row: TruthRow) in rows.append(row) },
                delivery: { lines.append($0) }
            )
            self.lines = lines
            self.rows = rows
        }
    }

    static let bad = Output(options)

    @Test func theSameSeedWritesTheSameBytes() {
        var fewer = Self.options
        fewer.subscriptions = 40
        let one = Output(fewer)
        fewer.cores = 1
        let other = Output(fewer)
        #expect(one.lines == other.lines)
        #expect(one.rows == other.rows)
        #expect(one.statistics == other.statistics)
        fewer.seed += 1
        #expect(Output(fewer).lines != one.lines)
    }

    @Test func deliveryIsReallyBad() {
        let statistics = Self.bad.statistics
        #expect(statistics.subscriptions == 400 && Self.bad.rows.count == 400)
        #expect(statistics.deliveries == Self.bad.lines.count)
        #expect(statistics.duplicates > statistics.deliveries / 30)
        #expect(statistics.lost > statistics.notices / 100)
        #expect(statistics.disorderedNeighbours > statistics.deliveries / 20)
        #expect(statistics.disorderedWithinSubscription > statistics.deliveries / 50)
        let distinct = Set(Self.bad.lines)
        #expect(distinct.count == statistics.deliveries - statistics.duplicates)
        #expect(
            statistics.notices == distinct.count + statistics.lost + statistics.inFlight,
            "every notification arrives, is lost or is under way"
        )
        #expect(Self.bad.rows.reduce(0) { $0 + $1.deliveredEvents } == distinct.count)
        #expect(statistics.differingStates > 0, "losses must matter")
    }

    @Test func everyStateHasRowsAtTheEnd() {
        let big = Simulation(Simulation.Options(subscriptions: 2000, seed: 3))
        var states: [String: Int] = [:]
        var everAtAnyTime: Set<String> = []
        for number in 0..<2000 {
            let life = big.life(number)
            let answer = TruthAnswer(at: big.options.until, in: life.intervals)
            states[answer?.state ?? "none", default: 0] += 1
            for interval in life.intervals {
                everAtAnyTime.insert(interval.condition.state.rawValue)
            }
        }
        #expect(states["active", default: 0] > 600)
        #expect(states["expired", default: 0] > 400)
        #expect(states["revoked", default: 0] > 40)
        #expect(states["billing_retry", default: 0] > 12)
        #expect(states["grace_period", default: 0] > 3)
        #expect(everAtAnyTime == Set(TruthCondition.State.allCases.map(\.rawValue)))
    }

    @Test func withoutFaultsEverythingArrivesInOrderAndTheTruthsAreEqual() {
        var options = Self.options
        options.subscriptions = 100
        options.faults = .none
        let output = Output(options)
        let statistics = output.statistics
        #expect(statistics.duplicates == 0 && statistics.lost == 0)
        #expect(statistics.disorderedNeighbours == 0)
        #expect(statistics.deliveries == statistics.notices - statistics.inFlight)
        for row in output.rows where row.deliveredEvents == row.appleEvents {
            #expect(row.delivered == row.apple)
        }
    }

    @Test func theTruthFileHasOneObjectForEachSubscription() throws {
        var text: [UInt8] = []
        var deliveries: [UInt8] = []
        var options = Self.options
        options.subscriptions = 3
        _ = Simulation(options).write(
            deliveries: { deliveries += $0 },
            truth: { (bytes: [UInt8]) in text += bytes }
        )
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 3)
        for line in lines {
            #expect(line.hasPrefix(#"{"originalTransactionId":"200000000000"#))
            #expect(line.contains(#","bundleId":"com.example.subledger","environment":"Sandbox","#))
            #expect(line.contains(#""delivered":{"events":"#))
            #expect(line.contains(#""state":"active","cause":null,"productId":"com.example."#))
        }
        for line in String(decoding: deliveries, as: UTF8.self).split(separator: "\n") {
            #expect(line.hasPrefix(#"{"signedPayload":"eyJ"#) && line.hasSuffix(#""}"#))
        }
    }

    @Test func anAnswerRunsOverNeighboursOfTheSameState() throws {
        let active = TruthCondition(state: .active)
        let intervals = [
            TruthInterval(from: 10, until: 20, condition: active, productID: "a"),
            TruthInterval(from: 20, until: 30, condition: active, productID: "b"),
            TruthInterval(
                from: 30,
                until: nil,
                condition: TruthCondition(state: .expired, cause: "voluntary"),
                productID: "b"
            ),
        ]
        let answer = try #require(TruthAnswer(at: 25, in: intervals))
        #expect(answer.productID == "b" && answer.from == 10 && answer.until == 30)
        #expect(TruthAnswer(at: 9, in: intervals) == nil)
        #expect(TruthAnswer(at: 30, in: intervals)?.until == nil)
    }
}
