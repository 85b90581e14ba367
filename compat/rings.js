#!/usr/bin/env node
// Our ring beside the one of node's cluster proxy (npm hashring 3.2.0), built and changed as proxy.js does it.
//
// The same 100,000 seeded keys, some of them no UTF-8, on rings of 1 to 30 nodes and a few larger ones; rings whose
// nodes go and come back at random, down to none, with the order in which the library lists them; the layout of
// hashring 1.0.1 (four replicas); rings with two equal points, where the order of the nodes decides; and the ring of
// libketama, which the library can build too. Ours is asked through `crates/process/examples/sharding.rs`; the whole
// rings of 1 to 30 nodes through the daemon's own `staunch check FILE --keys -`, from a config file to an output's name.
//
//   rings.js [--seed N]    all of it
//   rings.js --self-test   the library bent in one way after the other: each time a difference must be found
'use strict';
const buffer = require('buffer');
const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const HashRing = require('hashring');

const KEYS = 100_000;
const SIZES = Array.from({ length: 30 }, (_, at) => at + 1);
// Some of those with 39 points for a node (49, 56, 98, 161) and one without.
const LARGE_SIZES = [49, 50, 56, 98, 161];
// Labels with a point in common, found by search.
const TIES = [['tie-1161:8125', 'tie-1931:8125'], ['tie-919:8125', 'tie-3012:8125']];
const WORKERS = 2;
// The proxy's cache of owners, which has no say in sharding. Its 10,000 would only be evicted from, and slowly.
const CACHE = 1;
// Keys on lines, by how many: the same go to many programs.
const lined = new Map();

const words = process.argv.slice(2);
const seed = words.includes('--seed') ? Number(words[words.indexOf('--seed') + 1]) : 1;
const built = path.join(process.env.CARGO_TARGET_DIR || path.join(__dirname, '..', 'target'), 'debug');
const program = process.env.PLACEMENT || path.join(built, 'examples', 'sharding');
const staunch = process.env.STAUNCH || path.join(built, 'staunch');

main();

async function main() {
  for (const [file, of] of [[program, 'process --example sharding'], [staunch, 'staunch']]) {
    if (fs.existsSync(file)) continue;
    console.error(`rings: ${file} is missing: cargo build --package ${of}`);
    process.exit(2);
  }
  const keys = randomKeys(random(seed));
  const [passed, failed] = words.includes('--self-test') ? await bentRings(keys) : await straightRings(keys);
  console.log(`rings: ${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}

async function straightRings(keys) {
  const cases = [...sizes(KEYS), ...replicas(3_000), ...histories(400), ...ties(4_000), ...ketama(3_000)];
  let passed = 0, failed = 0;
  for (const check of await asked(cases, keys)) {
    if (check.difference === null) { passed += 1; continue; }
    failed += 1;
    console.log(`DIFFER ${check.name}, seed ${seed}\n  ${check.difference}`);
  }
  return [passed, failed];
}

// Each bend must show in the cases that are about it.
async function bentRings(keys) {
  const bends = [
    ['another label', sizes(2_000), { label: (label) => label.replace(/5$/, '6') }],
    ['41 points for a node', sizes(2_000), { options: { 'vnode count': 41 } }],
    ['four replicas', sizes(2_000), { options: { replicas: 4 } }],
    ['one replica', replicas(2_000), { options: { replicas: 1 } }],
    ['a node that stays', histories(400), { remove: () => {} }],
    ['a node that does not return', histories(400), { add: () => {} }],
    ['an empty ring that answers', histories(400), { get: (ring, key) => ring.get(key) || ring.last }],
    ['a node that returns to its old place', ties(4_000), { add: addInPlace }],
    ['three replicas', ketama(2_000), { options: { compatibility: 'hash_ring' } }],
    ['keys as Latin-1', sizes(2_000), { encoding: 'latin1' }],
  ];
  let passed = 0, failed = 0;
  for (const [name, cases, bend] of bends) {
    const checks = await asked(cases.map((each) => ({ ...each, bend })), keys);
    const found = checks.filter((check) => check.difference !== null);
    console.log(`${found.length > 0 ? 'found ' : 'MISSED'} ${name}: ${found.length} of ${checks.length} checks differ`);
    if (found.length > 0) passed += 1; else failed += 1;
  }
  return [passed, failed];
}

// ---- cases: labels, how many keys, and which nodes go (`-N`) and come back (`N`) one after the other

function sizes(count) {
  const one = (size) => ({ name: `${size} nodes`, labels: labels(size), count, steps: [] });
  return [...SIZES.map((size) => ({ ...one(size), whole: true })),
    ...LARGE_SIZES.map((size) => ({ ...one(size), count: Math.min(count, 2_000) }))];
}

function replicas(count) {
  const four = { form: 'statsd-node-4', options: { replicas: 4 } };
  return SIZES.map((size) => ({ name: `${size} nodes, 1.0.1`, labels: labels(size), count, steps: ['-0'], ...four }));
}

function histories(count) {
  const next = random(seed + 1);
  return SIZES.map((size) => {
    const all = Array.from({ length: size }, (_, at) => String(at));
    const steps = Array.from({ length: 8 }, () => (next(3) > 0 ? '-' : '') + next(size));
    if (size <= 5) steps.push(...all.map((at) => `-${at}`));
    return { name: `${size} nodes going and coming`, labels: labels(size), count, steps: [...steps, ...all] };
  });
}

function ties(count) {
  return TIES.flatMap((pair) => [pair, [...pair].reverse()]).map((pair) => {
    const shared = points(pair[0]).filter((point) => points(pair[1]).includes(point));
    if (shared.length === 0) throw new Error(`${pair} have no point in common`);
    return { name: `equal points of ${pair}`, labels: pair, count, steps: ['-0', '0', '-0', '0', '-1', '1'] };
  });
}

// Without the sizes for which the library, in doubles, arrives at 39 digests where libketama, in floats, has 40; and
// without keys that are no text.
function ketama(count) {
  const form = { form: 'ketama', options: { compatibility: 'ketama' }, compared: buffer.isUtf8 };
  return SIZES.filter((size) => ![7, 14, 28].includes(size)).map((size) => (
    { name: `${size} nodes, libketama`, labels: labels(size), count, steps: [], ...form }));
}

function points(label) {
  return new HashRing({ [label]: 100 }, 'md5', { replicas: 0 }).points([label])[label];
}

function labels(size) {
  const forms = [
    (at) => `10.0.0.${at}:8125`,
    (at) => `127.0.0.1:${8125 + 2 * at}`,
    (at) => `statsd-${at}.metrics.example.com:8125`,
  ];
  return Array.from({ length: size }, (_, at) => forms[size % forms.length](at + 1));
}

// ---- both sides

// The library's digests are kept: those of a key are the same on every ring.
const digests = new Map();
const digest = HashRing.prototype.hash;
HashRing.prototype.hash = function hash(text) {
  if (!digests.has(text)) digests.set(text, digest.call(this, text));
  return digests.get(text);
};

// All checks of the cases: one where the nodes stand at the start, and two behind each step.
async function asked(cases, keys) {
  const parts = Array.from({ length: WORKERS }, (_, worker) => cases.filter((_, at) => at % WORKERS === worker));
  const results = await Promise.all(parts.map(async (part) => {
    const whole = part.filter((each) => each.whole), others = part.filter((each) => !each.whole);
    const ours = whole.map((each) => checked(each, keys));
    if (others.length > 0) ours.push(ask(others, keys));
    const results = (each) => library(each, keys);
    // The library works while ours does.
    const expected = await new Promise((done) => setImmediate(() => done([...whole, ...others].flatMap(results))));
    const lines = (await Promise.all(ours)).flat();
    if (lines.length !== expected.length) throw new Error(`${lines.length} answers, ${expected.length} expected`);
    return expected.map(({ name, want }, at) => ({ name, difference: difference(want, lines[at], keys) }));
  }));
  return results.flat();
}

// What the daemon says about one whole ring, as the example would: the place of each key's owner.
async function checked({ labels, count }, keys) {
  const to = JSON.stringify(labels.map((label) => `udp://${label}`));
  const config = ['[sources.s]', 'type = "statsd"', 'listen = ["udp://127.0.0.1:18125"]',
    '[outputs.o]', 'type = "udp"', 'from = ["s"]', 'sharding = "statsd-node"', `to = ${to}`, ''].join('\n');
  const place = new Map(labels.map((label, at) => [`o/${label}`, at]));
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rings-'));
  try {
    const file = path.join(folder, 'ring.toml');
    fs.writeFileSync(file, config);
    const answers = (await said(staunch, ['check', file, '--keys', '-'], onLines(keys, count)))
      .toString('latin1').split('\n').slice(0, -1);
    if (answers.length !== count) throw new Error(`${answers.length} answers, ${count} keys`);
    return [answers.map((answer, at) => {
      const key = `${keys[at].latin1Slice()}\t`;
      if (!answer.startsWith(key)) throw new Error(`${JSON.stringify(answer)} answers another key`);
      return `${place.get(answer.slice(key.length))} `;
    }).join('')];
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

// What ours says: a line for each check.
async function ask(cases, keys) {
  const needed = Math.max(...cases.map((each) => each.count));
  const script = [`keys ${needed}\n`, onLines(keys, needed)];
  for (const { form = 'statsd-node', labels, count, steps } of cases) {
    script.push(`cluster ${form} ${labels.join(' ')}\nowners ${count}\n`);
    for (const step of steps) {
      const change = step.startsWith('-') ? `out ${step.slice(1)}` : `in ${step}`;
      script.push(`${change}\nlisted\nowners ${count}\n`);
    }
  }
  return (await said(program, [], joined(script))).toString().split('\n').slice(0, -1);
}

// The first keys, each on its line.
function onLines(keys, count) {
  if (!lined.has(count)) lined.set(count, joined(keys.slice(0, count).flatMap((key) => [key, '\n'])));
  return lined.get(count);
}

function joined(pieces) {
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
}

// What a program prints when it is told `input`.
function said(program, words, input) {
  return new Promise((done, fail) => {
    const child = childProcess.spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    const pieces = [];
    child.stdout.on('data', (piece) => pieces.push(piece));
    child.on('error', fail);
    child.on('close', (code) => {
      if (code !== 0) return fail(new Error(`${program} ended with ${code}`));
      done(Buffer.concat(pieces));
    });
    // Who reads only a part of it shows that in its answers.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

// What the library says, and what each answer is about. Nodes are marked as proxy.js marks them.
function library({ name, labels, count, steps, options = {}, compared = () => true, bend = {} }, keys) {
  const place = new Map(labels.map((label, at) => [label, at]));
  const bent = bend.label ? labels.map(bend.label) : labels;
  bent.forEach((label, at) => place.set(label, at));
  const nodes = Object.fromEntries(bent.map((label) => [label, 100]));
  const ring = new HashRing(nodes, 'md5', { 'max cache size': CACHE, replicas: 0, ...options, ...bend.options });
  ring.last = labels[0];
  const get = bend.get || ((ring, key) => ring.get(key));
  const owners = () => keys.slice(0, count).map((key) => {
    if (!compared(key)) return null;
    const owner = get(ring, key.toString(bend.encoding));
    return owner === undefined ? '-' : place.get(owner);
  });
  const checks = [{ name, want: owners() }];
  for (const step of steps) {
    const label = bent[Math.abs(Number(step))];
    if (step.startsWith('-')) (bend.remove || ((ring, label) => ring.remove(label)))(ring, label);
    else (bend.add || ((ring, label) => ring.add({ [label]: 100 })))(ring, label, bent);
    const about = `${name}, after ${step}`;
    checks.push({ name: `${about}, listed`, want: ring.servers.map((server) => place.get(server.string)) });
    checks.push({ name: about, want: owners() });
  }
  return checks;
}

function addInPlace(ring, label, labels) {
  const live = labels.filter((each) => each === label || ring.servers.some((server) => server.string === each));
  for (const each of live) ring.remove(each);
  for (const each of live) ring.add({ [each]: 100 });
}

// How ours differs from what is wanted, in words; null for not at all.
function difference(want, line, keys) {
  const got = line.split(' ').slice(0, -1);
  const at = want.findIndex((owner, at) => owner !== null && String(owner) !== got[at]);
  if (at < 0 && got.length === want.length) return null;
  const key = want.length < 200 ? '' : `, key ${JSON.stringify(keys[at]?.toString('latin1'))}`;
  return `original ${want[at]}, ours ${got[at]}: place ${at} of ${want.length}, ${got.length}${key}`;
}

// ---- chance

// Names as applications have them, and some odd ones: empty, one byte, any bytes but LF and `:`.
function randomKeys(next) {
  const parts = ['api', 'db', 'web', 'cache', 'queue', 'login', 'cart', 'größe', 'latency', 'hits', 'p99'];
  const name = () => Array.from({ length: 1 + next(5) }, () => parts[next(parts.length)] + (next(2) ? next(1000) : ''));
  const byte = () => [next(10), 11 + next(47), 59 + next(197)][next(3)];
  const bytes = () => Buffer.from(Array.from({ length: next(12) }, byte));
  const key = () => (next(10) ? Buffer.from(name().join('.') + (next(8) ? '' : `;env=${next(9)}`)) : bytes());
  return [Buffer.alloc(0), ...Array.from({ length: KEYS - 1 }, key)];
}

// A number below `bound` at each call (mulberry32).
function random(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}
