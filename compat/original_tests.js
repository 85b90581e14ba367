#!/usr/bin/env node
// The original's own Graphite tests with Staunch in place of the original.
//
// They come with its npm package (test/graphite_*.js), start a server with a configuration file of theirs, send samples
// and look at what arrives. They are run as they are, but for what says nothing about the server: their fixed ports
// become free ones; they look at four flushes instead of two, since a busy machine may miss one; a slip by which they
// may answer twice (`collect_for` takes its listener from the wrong event) is mended; and the few functions of their
// test framework that they use are here. Each test runs in a process of its own, several at the same time.
//
// One deviation of Staunch shows: the tests expect a connection per flush, and Staunch keeps one open. So its points
// pass through a relay in this process, which hands each flush on over a connection of its own.
//
//   original_tests.js                  with Staunch ($STAUNCH)
//   original_tests.js --self-test      with the original itself, and no relay
'use strict';
const assert = require('assert');
const childProcess = require('child_process');
const dgram = require('dgram');
const { EventEmitter } = require('events');
const fs = require('fs');
const Module = require('module');
const net = require('net');
const os = require('os');
const path = require('path');

const ORIGINAL = path.join(__dirname, 'node_modules', 'statsd');
const TEST_MS_MAX = 10_000;
const SELF_TEST = process.argv.includes('--self-test');
const AT_ONCE_MAX = 8;
const [file, title] = process.argv.slice(2).filter((word) => !word.startsWith('--'));

if (title) oneTest(); else allTests();

// All tests, each in a process of its own; prints the sums.
async function allTests() {
  const folder = path.join(ORIGINAL, 'test');
  if (!fs.existsSync(folder)) {
    console.error(`original tests: ${folder} is missing: run \`npm ci\` in compat/`);
    process.exit(2);
  }
  const waiting = [];
  for (const name of fs.readdirSync(folder).filter((name) => /^graphite_.*\.js$/.test(name)).sort()) {
    const titles = Object.keys(load(name, {}, '')).filter((title) => !['setUp', 'tearDown'].includes(title));
    waiting.push(...titles.map((title) => [name, title]));
  }
  let passed = 0, failed = 0;
  const worker = async () => {
    for (let test = waiting.shift(); test; test = waiting.shift()) {
      if (await started(test)) passed += 1; else failed += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, worker));
  console.log(`original tests: ${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}

// Runs one test in a process; whether it held.
function started(test) {
  return new Promise((done) => {
    const words = ['--no-deprecation', __filename, ...test, ...process.argv.slice(2)];
    childProcess.execFile(process.execPath, words, { timeout: 3 * TEST_MS_MAX }, (error, stdout, stderr) => {
      console.log(`${error ? 'FAILED' : 'ok    '} ${test.join(' ')}`);
      if (error) console.log((stdout + stderr).replace(/^/gm, '  '));
      done(!error);
    });
  });
}

// One test of one file; the exit code says whether it held.
async function oneTest() {
  const ports = { samples: await freePort(), graphite: await freePort(), management: await freePort() };
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'original-tests-'));
  const tests = load(file, ports, folder);
  const context = {};
  await new Promise((done) => tests.setUp.call(context, done));
  const problems = await run(tests[title], context);
  await new Promise((done) => tests.tearDown.call(context, done));
  fs.rmSync(folder, { recursive: true });
  problems.forEach((text) => console.log(text));
  process.exit(problems.length === 0 ? 0 : 1);
}

// What the framework gives to a test: assertions that are counted, and `done`.
function run(test, context) {
  return new Promise((resolve) => {
    const problems = [];
    let expected = null, seen = 0;
    const end = () => {
      clearTimeout(timer);
      if (expected !== null && seen !== expected) problems.push(`${seen} assertions, ${expected} expected`);
      resolve(problems);
    };
    const timer = setTimeout(() => { problems.push(`not done after ${TEST_MS_MAX} ms`); end(); }, TEST_MS_MAX);
    const checked = (check) => (...values) => {
      seen += 1;
      try { check(...values); } catch (error) { problems.push(error.message.replace(/\s+/g, ' ')); }
    };
    test.call(context, {
      expect: (count) => { expected = count; },
      ok: checked(assert.ok), equal: checked(assert.equal), equals: checked(assert.equal),
      deepEqual: checked(assert.deepEqual), done: end,
    });
  });
}

// A test file as a module, with its ports and what it requires changed.
function load(name, ports, folder) {
  const full = path.join(ORIGINAL, 'test', name);
  const text = fs.readFileSync(full, 'utf8')
    .replace(/\b31337\b/g, ports.graphite)
    .replace(/port: 8125\b/g, `port: ${ports.samples}\\n, address: \\"127.0.0.1\\", mgmt_port: ${ports.management}`)
    .replace(/\b8125\b/g, ports.samples)
    .replace(/myflush ?\* ?[23]/g, 'myflush * 4')
    .replace("removeListener('request'", "removeListener('connection'")
    .replace("'python '", "'python3 '");
  const stand = {
    temp: temporary(folder),
    child_process: { ...childProcess, spawn: (_, [, config]) => server(config, ports) },
  };
  const module = new Module(full, null);
  module.filename = full;
  module.paths = Module._nodeModulePaths(__dirname);
  const real = module.require.bind(module);
  module.require = (wanted) => stand[wanted] || real(wanted);
  module._compile(text, full);
  return module.exports;
}

// The part of npm's `temp` that the tests use.
function temporary(folder) {
  let count = 0;
  return {
    open({ suffix }, done) {
      const place = path.join(folder, `${count += 1}${suffix}`);
      done(null, { path: place, fd: fs.openSync(place, 'w') });
    },
  };
}

// The server of a test: what it does with a child process (its end, its output, killing it) works alike.
function server(config, ports) {
  if (SELF_TEST) {
    return childProcess.spawn(process.execPath, ['--no-deprecation', path.join(ORIGINAL, 'stats.js'), config]);
  }
  const stand = Object.assign(new EventEmitter(), { stdout: new EventEmitter(), stderr: new EventEmitter() });
  const pickle = fs.readFileSync(config, 'utf8').includes('graphiteProtocol');
  const relay = net.createServer((flushes) => relayed(flushes, pickle, ports.graphite));
  relay.listen(0, '127.0.0.1', () => {
    fs.writeFileSync(config, fs.readFileSync(config, 'utf8').replace(String(ports.graphite), relay.address().port));
    const binary = process.env.STAUNCH || path.join(__dirname, '..', 'target', 'debug', 'staunch');
    const words = ['statsd', config, '--http', 'off'];
    const child = childProcess.spawn(binary, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => { said += data; });
    child.on('error', (error) => { said += error; stand.emit('exit', 2); });
    child.on('exit', (code) => {
      relay.close();
      if (code !== 0) console.log(`staunch ended with ${code}: ${said}`);
      stand.emit('exit', code);
    });
    stand.kill = () => child.kill();
    whenListening(ports.management, () => stand.stdout.emit('data', 'server is up'));
  });
  return stand;
}

// Hands each flush on over a connection of its own. A flush ends with its `flush_length`, or is one frame of pickle.
function relayed(flushes, pickle, port) {
  let held = Buffer.alloc(0);
  flushes.on('error', () => {});
  flushes.on('data', (data) => {
    held = Buffer.concat([held, data]);
    for (let end = flushEnd(held, pickle); end > 0; end = flushEnd(held, pickle)) {
      const one = held.subarray(0, end);
      held = held.subarray(end);
      const out = net.connect(port, '127.0.0.1', () => out.end(one));
      out.on('error', () => {});
    }
  });
}

// Bytes of the first whole flush; 0 when there is none yet.
function flushEnd(held, pickle) {
  if (pickle) {
    const length = held.length < 4 ? Infinity : 4 + held.readUInt32BE(0);
    return held.length < length ? 0 : length;
  }
  const last = held.indexOf('graphiteStats.flush_length');
  return last < 0 ? 0 : held.indexOf('\n', last) + 1;
}

function whenListening(port, done) {
  const probe = net.connect(port, '127.0.0.1', () => { probe.destroy(); done(); });
  probe.on('error', () => setTimeout(whenListening, 20, port, done));
}

// Abstract unix sockets: they tell other runs on this machine which ports are taken (see `_claim` in daemon.py).
const claims = [];

function claim(port) {
  return new Promise((done) => {
    const socket = net.createServer().on('error', () => done(false));
    socket.listen(`\0staunch-compat-port-${port}`, () => { socket.unref(); claims.push(socket); done(true); });
  });
}

// A port that is free for UDP and TCP, below those that the kernel gives to connecting sockets.
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const tcp = await new Promise((done) => {
      const probe = net.createServer().on('error', () => done(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => done(true)));
    });
    const udp = tcp && await new Promise((done) => {
      const probe = dgram.createSocket('udp4').on('error', () => done(false));
      probe.bind(port, '127.0.0.1', () => probe.close(() => done(true)));
    });
    if (udp && await claim(port)) return port;
  }
}
