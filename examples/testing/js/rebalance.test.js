// A member is frozen, 45 seconds pass, and the other one is assigned its partitions.
const assert = require("node:assert");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { setTimeout: sleep } = require("node:timers/promises");
const { Kafka, logLevel } = require("kafkajs");

async function until(holds) {
  for (const end = Date.now() + 120_000; !(await holds()); await sleep(5)) {
    assert(Date.now() < end, "not in time");
  }
}

async function start() {
  const ready = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "kgroup-")), "ready.json");
  const server = spawn(process.env.KGROUP ?? "kgroup", [
    ...["serve", "--memory", "--port", "0", "--control", "0", "--ready-file", ready],
    ...["--set", "group.initial.rebalance.delay.ms=0"],
  ]);
  await until(() => fs.existsSync(ready));
  const at = JSON.parse(fs.readFileSync(ready));
  const ask = async (method, where, body, status = 200) => {
    const answer = await fetch(at.control + where, {
      method,
      headers: { Authorization: `Bearer ${at.token}` },
      body: body && JSON.stringify(body),
    });
    assert.strictEqual(answer.status, status, await answer.clone().text());
    return answer.json();
  };
  const stop = async () => {
    server.kill();
    await once(server, "exit");
  };
  return { brokers: at.bootstrap.split(","), ask, stop };
}

async function member(kafka, name) {
  const consumer = kafka(name).consumer({ groupId: "pay", heartbeatInterval: 100, sessionTimeout: 30_000 });
  const found = { consumer, joins: 0, owned: [] };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    found.joins += 1;
    found.owned = payload.memberAssignment.orders ?? [];
  });
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"] });
  await consumer.run({ eachMessage: async () => {} });
  return found;
}

test("the other member is assigned what the frozen one had", async () => {
  const server = await start();
  const kafka = (clientId) => new Kafka({ clientId, brokers: server.brokers, logLevel: logLevel.NOTHING });
  const members = [];
  try {
    const admin = kafka("admin").admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: "orders", numPartitions: 6 }] });
    await admin.disconnect();
    for (const name of ["orders-0", "orders-1"]) members.push(await member(kafka, name));
    const [a, b] = members;
    await until(() => a.owned.length === 3 && b.owned.length === 3);
    await server.ask("POST", "/members/freeze", { member: "orders-0" });
    await server.ask("POST", "/advance", { by: "45s" });
    await until(() => b.owned.length === 6);
    const before = a.joins;
    await server.ask("POST", "/members/thaw", { member: "orders-0" });
    await until(() => a.joins > before && a.owned.length === 3);
  } finally {
    for (const { consumer } of members) await consumer.disconnect();
    await server.stop();
  }
});

test("requests can be asserted on, and nonsense is refused", async () => {
  const server = await start();
  try {
    const rule = { keys: ["Produce"], error: "NOT_LEADER_OR_FOLLOWER", count: 2 };
    await server.ask("POST", "/faults", { rules: [rule] });
    const kafka = new Kafka({ brokers: server.brokers, logLevel: logLevel.NOTHING });
    const producer = kafka.producer({ retry: { initialRetryTime: 10 } });
    await producer.connect();
    await producer.send({ topic: "orders", messages: [{ value: "a" }] });
    await producer.disconnect();
    const fault = await server.ask("GET", "/faults/1");
    assert.deepStrictEqual([fault.hits, fault.left], [2, 0]);
    await server.ask("POST", "/advance", { by: "-1s" }, 400);
  } finally {
    await server.stop();
  }
});
