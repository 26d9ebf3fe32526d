/// Writes the life of one subscription, period by period.
///
/// It keeps what Apple would keep: each transaction, the renewal info, and the clock of what was
/// signed last. Every step first changes those, then announces the change, then paints the story.
struct LifeWriter {
    let number: Int
    let chain: Chain
    let until: Int64
    var random: SeededRandom

    /// How much more often than by nature rare things happen.
    let rareFactor: Double

    var notices: [Notice] = []
    var story = Story()
    var events: [LifeEvent] = []
    /// All transactions as they stand.
    var periods: [Period] = []
    /// The place of the running period; seats that were added to it stand after it.
    var running = 0
    /// Set while a 12-month commitment runs.
    var commitment: Commitment?
    /// Set for what is sold by the seat.
    var seats: Seats?
    /// The account token that replaced the first one.
    var token: String?
    /// What the Server API answered before; it is not asked for the same again.
    var answers: Set<Answer> = []
    var renewal: NoticeRenewal
    /// The product of the running period.
    var product: Catalogue.Product
    /// The product of the next period.
    var pending: Catalogue.Product
    /// When the newest envelope was signed.
    var clock: Int64 = 0
    /// Set when the next notice would lie past the end of the simulated time.
    var isOver = false

    struct Period {
        var transaction: NoticeTransaction
        /// Seats that were added to a period.
        var isAddition = false
        /// Apple said itself that it was upgraded.
        var isReadAgain = false
        /// Bought as an upgrade of the period before.
        var isUpgrade = false
        /// Another period took its place.
        var isSuperseded = false
        var isTrial: Bool { transaction.offer?.discountType == "FREE_TRIAL" }
    }

    init(
        number: Int,
        chain: Chain,
        until: Int64,
        random: SeededRandom,
        rareFactor: Double,
        sellsSeats: Bool
    ) {
        self.number = number
        self.chain = chain
        self.until = until
        self.random = random
        self.rareFactor = rareFactor
        product = sellsSeats ? Catalogue.team : Catalogue.anyProduct(&self.random)
        pending = product
        renewal = NoticeRenewal(
            productID: product.id,
            renewalDate: 0,
            recentSubscriptionStartDate: chain.originalPurchaseDate,
            signedDate: 0
        )
        if sellsSeats {
            seats = Seats(
                isHostedByDeveloper: self.random.chance(0.4),
                quantity: Int(self.random.between(3, 12))
            )
        } else if rare(0.03) {
            product = self.random.pick(Catalogue.committed)
            commitment = Commitment()
        }
    }

    /// The running period.
    var current: NoticeTransaction {
        get { periods[running].transaction }
        set { periods[running].transaction = newValue }
    }

    /// The end of a period of a product, or of one payment of its commitment.
    func end(of product: Catalogue.Product, from start: Int64) -> Int64 {
        commitment == nil ? product.length.end(from: start) : PlanLength.month.end(from: start)
    }

    /// True with the given probability, raised for what is rare.
    mutating func rare(_ probability: Double) -> Bool {
        random.chance(min(0.8, probability * rareFactor))
    }

    mutating func run(from start: Int64) {
        var offer: NoticeOffer?
        var end = end(of: product, from: start)
        if commitment != nil || seats != nil {
            count(commitment == nil ? .seatsBought : .committed)
        } else if random.chance(0.35) {
            let days: Int64 = product.length == .week ? 3 : 7
            let period = days == 3 ? "P3D" : "P1W"
            offer = NoticeOffer(type: 1, discountType: "FREE_TRIAL", period: period)
            end = start + days * Span.day
            events.append(.trial)
        } else if rare(0.04) {
            offer = firstOffer()
        }
        open(product, from: start, to: end, reason: .purchase, offer: offer)
        events.append(.initialBuy)
        announce("SUBSCRIBED", "INITIAL_BUY", at: start + 2 * Span.second, status: 1)
        paintPeriod(from: start)
        while !isOver {
            let isRenewed = commitment == nil ? livePeriod() : livePayment()
            if isRenewed || isOver { continue }
            guard random.chance(0.4) else { break }
            resubscribe()
        }
    }

    // MARK: - Announcing

    /// Signs one notice about a period (the running one if not told otherwise) and the renewal
    /// info; returns when.
    @discardableResult
    mutating func announce(
        _ type: String,
        _ subtype: String? = nil,
        at wanted: Int64,
        status: Int?,
        about index: Int? = nil,
        reason: String? = nil
    ) -> Int64 {
        guard let instant = advance(to: wanted) else { return max(wanted, clock) }
        var transaction = periods[index ?? running].transaction
        transaction.signedDate = instant - random.between(10, 60)
        var info = renewal
        info.signedDate = instant - random.between(20, 90)
        var notice = Notice(
            uuid: Self.uuid(&random),
            type: type,
            subtype: subtype,
            signedDate: instant,
            status: status,
            transaction: transaction,
            renewal: info
        )
        notice.consumptionRequestReason = reason
        notices.append(notice)
        return instant
    }

    /// Moves the clock on for the next signature; nil where that lies past the end.
    mutating func advance(to wanted: Int64) -> Int64? {
        // Apart by more than the spread of the inner dates, so that the order is never in doubt.
        let instant = max(wanted, clock + 1500)
        guard !isOver, instant < until else {
            isOver = true
            return nil
        }
        clock = instant
        return instant
    }

    // MARK: - Periods

    /// Opens a period and resets the renewal info to it.
    mutating func open(
        _ newProduct: Catalogue.Product,
        from start: Int64,
        to end: Int64,
        reason: NoticeTransaction.Reason,
        offer: NoticeOffer? = nil
    ) {
        product = newProduct
        pending = newProduct
        let price = newProduct.price(in: chain.storefront)
        let charged = offer?.discountType == "FREE_TRIAL" ? 0 : offer == nil ? price : price / 2
        var transaction = NoticeTransaction(
            transactionID: Self.transactionID(number, periods.count),
            productID: newProduct.id,
            purchaseDate: start,
            expiresDate: end,
            reason: reason,
            price: charged,
            signedDate: start
        )
        transaction.webOrderLineItemID = Self.lineItemID(number, periods.count)
        transaction.offer = offer
        transaction.appAccountToken = token
        running = periods.count
        periods.append(Period(transaction: transaction))
        let runStart = renewal.recentSubscriptionStartDate
        renewal = NoticeRenewal(
            productID: newProduct.id,
            renewalDate: end,
            renewalPrice: price,
            recentSubscriptionStartDate: runStart,
            signedDate: start
        )
        renewal.appAccountToken = token
        openPayment()
        openSeats()
    }

    /// Paints the running period and what is to be expected after it.
    mutating func paintPeriod(from start: Int64) {
        guard !isOver else { return }
        story.paint(from: start, .active, product.id)
        paintTail()
    }

    /// Paints what happens after the running period if there is no further news.
    mutating func paintTail() {
        guard !isOver else { return }
        let end = current.expiresDate
        if renewal.autoRenewStatus == 0 {
            story.paint(from: end, .expired("voluntary"), product.id)
        } else {
            story.paint(from: end, .renewalPending, product.id)
            story.paint(from: end + Span.leeway, .expired("presumed"), product.id)
        }
    }

    mutating func count(_ event: LifeEvent) {
        if !isOver { events.append(event) }
    }

    /// An instant within the running period, given in percent of its length.
    mutating func instant(_ low: Int64, _ high: Int64) -> Int64 {
        let start = current.purchaseDate
        let length = current.expiresDate - start
        return random.between(start + length / 100 * low, start + length / 100 * high)
    }

    // MARK: - Names

    static func transactionID(_ number: Int, _ index: Int) -> String {
        String(2_000_000_000_000_000 + number * 1000 + index)
    }

    /// Which transaction of a chain an id is; nil for another chain's.
    static func index(ofTransaction id: String, _ chain: Chain) -> Int? {
        guard let id = Int(id), let first = Int(chain.originalTransactionID) else { return nil }
        return 0..<1000 ~= id - first ? id - first : nil
    }

    static func lineItemID(_ number: Int, _ index: Int) -> String {
        String(1_000_000_000_000_000 + number * 1000 + index)
    }

    static func uuid(_ random: inout SeededRandom) -> String {
        let high = (random.next() & ~0xF000) | 0x4000
        let low = (random.next() & ~(3 << 62)) | (2 << 62)
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for (word, shifts) in [(high, 16), (low, 16)] {
            for position in 0..<shifts {
                if [8, 13, 18, 23].contains(text.count) { text.append(UInt8(ascii: "-")) }
                text.append(digits[Int((word >> UInt64(60 - 4 * position)) & 15)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
