// Hosts kafkajs clients and speaks JSON lines; see tests/interop/driver.py.
'use strict'

const readline = require('node:readline')
const { Kafka, logLevel, AssignerProtocol, CompressionTypes } = require('kafkajs')

const BEAT_MS = 300
const members = new Map()

const connect = (request) =>
  new Kafka({ clientId: request.client_id, brokers: [request.bootstrap], logLevel: logLevel.NOTHING })

class Member {
  constructor(request) {
    this.read = []
    this.next = new Map()
    this.held = []
    this.rebalances = 0
    this.fatal = null
    this.request = request
  }

  async start() {
    const { group, topics, session_ms: sessionTimeout } = this.request
    this.consumer = connect(this.request).consumer({
      groupId: group,
      sessionTimeout,
      rebalanceTimeout: sessionTimeout,
      heartbeatInterval: BEAT_MS,
      maxWaitTimeInMs: BEAT_MS,
    })
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.rebalances += 1
      this.id = payload.memberId
      this.held = Object.entries(payload.memberAssignment).flatMap(([topic, ids]) => ids.map((id) => [topic, id]))
    })
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.held = []
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => {
      this.fatal = payload.restart ? null : payload.error.type || payload.error.name
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics, fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachMessage: async (each) => this.take(each) })
  }

  take({ topic, partition, message }) {
    this.read.push([topic, partition, Number(message.offset), message.value.toString()])
    this.next.set(`${topic} ${partition}`, { topic, partition, offset: String(Number(message.offset) + 1) })
  }

  state() {
    return {
      assignment: this.held,
      generation: null,
      member_id: this.id,
      fatal: this.fatal,
      rebalances: this.rebalances,
      read: this.read.length,
    }
  }

  async commit(offsets) {
    const rows = offsets
      ? offsets.map(([topic, partition, offset]) => ({ topic, partition, offset: String(offset) }))
      : [...this.next.values()]
    await this.consumer.commitOffsets(rows)
  }

  async committed(partitions) {
    const rows = await offsets(this.request, [...new Set(partitions.map(([topic]) => topic))])
    return rows.filter(([topic, id]) => partitions.some(([t, p]) => t === topic && p === id))
  }
}

const offsets = (request, topics) =>
  withAdmin(request, async (admin) => {
    const found = await admin.fetchOffsets({ groupId: request.group, topics })
    return found
      .flatMap(({ topic, partitions }) => partitions.map((p) => [topic, p.partition, Number(p.offset)]))
      .filter(([, , offset]) => offset >= 0)
      .sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] < b[0] ? -1 : 1))
  })

async function withAdmin(request, use) {
  const admin = connect(request).admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

const administer = (request) =>
  withAdmin(request, async (admin) => {
    const { op, topic, group, partitions } = request
    switch (op) {
      case 'admin.create_topic':
        if (!(await admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: 1 }] }))) {
          throw Object.assign(new Error('there already'), { type: 'TOPIC_ALREADY_EXISTS' })
        }
        return null
      case 'admin.delete_topic':
        return (await admin.deleteTopics({ topics: [topic] })) || null
      case 'admin.describe_topic': {
        const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
        const ends = await admin.fetchTopicOffsets(topic)
        ends.sort((a, b) => a.partition - b.partition)
        return { partitions: topics[0].partitions.length, ends }
      }
      case 'admin.list':
        return Object.fromEntries((await admin.listGroups()).groups.map((g) => [g.groupId, g.protocolType]))
      case 'admin.describe':
        return described((await admin.describeGroups([group])).groups[0])
      case 'admin.offsets':
        return offsets(request, undefined)
      case 'admin.alter_offsets':
        return (await admin.setOffsets({
          groupId: group,
          topic,
          partitions: request.offsets.map(([partition, offset]) => ({ partition, offset: String(offset) })),
        })) || null
      case 'admin.delete':
        return (await admin.deleteGroups([group])).map((g) => g.errorCode ?? 0)
      default:
        throw new Error(`unknown operation ${op}`)
    }
  })

function described(group) {
  const members = group.members.map((each) => ({
    client: each.clientId,
    host: each.clientHost,
    held: each.memberAssignment.length
      ? AssignerProtocol.MemberAssignment.decode(each.memberAssignment).assignment
      : {},
  }))
  members.sort((a, b) => (a.client < b.client ? -1 : 1))
  return { state: group.state, assignor: group.protocol, type: group.protocolType, code: group.errorCode, members }
}

async function produce(request) {
  const producer = connect(request).producer({
    idempotent: Boolean(request.config.idempotent),
    transactionalId: request.config.transaction,
    maxInFlightRequests: 1,
    createPartitioner: () => ({ message }) => message.partition,
  })
  await producer.connect()
  try {
    const compression = request.config.compression === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None
    const messages = request.rows.map(([partition, value]) => ({ partition, value }))
    const target = request.config.transaction ? await producer.transaction() : producer
    const sent = await target.send({ topic: request.topic, acks: -1, compression, messages })
    if (request.config.transaction) {
      const { group, offset } = request.config
      const partitions = [{ partition: 0, offset }]
      await target.sendOffsets({ consumerGroupId: group, topics: [{ topic: request.topic, partitions }] })
      await (request.config.abort ? target.abort() : target.commit())
    }
    return sent.map((each) => [each.partition, Number(each.baseOffset)]).sort((a, b) => a[0] - b[0])
  } finally {
    await producer.disconnect()
  }
}

async function run(request) {
  if (request.op === 'produce') return produce(request)
  if (request.op.startsWith('admin.')) return administer(request)
  if (request.op === 'start') {
    const member = new Member(request)
    members.set(request.name, member)
    await member.start()
    return null
  }
  const member = members.get(request.name)
  switch (request.op) {
    case 'state':
      return member.state()
    case 'records':
      return member.read
    case 'commit':
      await member.commit(request.offsets)
      return null
    case 'committed':
      return member.committed(request.partitions)
    case 'close':
      members.delete(request.name)
      await member.consumer.disconnect()
      return null
    default:
      throw new Error(`unknown operation ${request.op}`)
  }
}

async function answer(line) {
  const request = JSON.parse(line)
  let reply
  try {
    reply = { id: request.id, result: (await run(request)) ?? null }
  } catch (error) {
    const groups = error.groups?.map((each) => each.errorCode)
    reply = { id: request.id, error: error.type || (groups && `CODE_${groups}`) || error.name, message: String(error) }
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`)
}

readline.createInterface({ input: process.stdin }).on('line', answer).on('close', () => process.exit(0))
