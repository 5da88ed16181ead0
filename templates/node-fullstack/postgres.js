'use strict';

// A very small client of PostgreSQL, so that this app needs no packages: one connection, one query at a time, texts as
// values. For anything serious take the package `pg`. The protocol: https://www.postgresql.org/docs/current/protocol.html
const crypto = require('node:crypto');
const net = require('node:net');
const tls = require('node:tls');

/** Opens a connection: { query(text, values) answers rows of texts, end() }. */
async function connect(address) {
  const url = new URL(address);
  if (!/^postgres(ql)?:$/.test(url.protocol))
    throw new Error(`DATABASE_URL begins with ${url.protocol}, but this app speaks PostgreSQL only`);
  const socket = await open(url);
  const messages = reader(socket);
  await start(socket, messages, {
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
  });
  return { query: (text, values = []) => query(socket, messages, text, values), end: () => socket.end(message('X')) };
}

async function open(url) {
  const socket = net.connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) || 5432 });
  socket.on('error', () => {}); // whoever waits for an answer hears of it
  socket.setTimeout(10_000, () => socket.destroy(new Error('the database did not answer in time')));
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const mode = url.searchParams.get('sslmode') || 'disable';
  if (mode === 'disable') return socket;
  socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  const [answer] = await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
  if (answer !== 83 && /^(allow|prefer)$/.test(mode)) return socket;
  if (answer !== 83) throw new Error('the database does not speak TLS');
  const secure = tls.connect({
    socket,
    servername: net.isIP(url.hostname) ? undefined : url.hostname,
    rejectUnauthorized: mode === 'verify-full',
  });
  await new Promise((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject));
  return secure;
}

async function start(socket, messages, { user, password, database }) {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0client_encoding\0UTF8\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(parameters.length + 8, 0);
  head.writeInt32BE(196608, 4);
  socket.write(Buffer.concat([head, parameters]));
  let scram;
  for (;;) {
    const { type, data } = await messages.next();
    if (type === 'Z') return;
    if (type !== 'R') continue;
    const kind = data.readInt32BE(0);
    if (kind === 3) socket.write(message('p', `${password}\0`));
    else if (kind === 5)
      socket.write(message('p', `md5${md5(md5(password + user) + data.toString('latin1', 4, 8))}\0`));
    else if (kind === 10) {
      scram = startScram(password);
      socket.write(message('p', 'SCRAM-SHA-256\0', length(scram.first), scram.first));
    } else if (kind === 11) socket.write(message('p', scram.next(data.toString('utf8', 4))));
    else if (kind === 12) scram.check(data.toString('utf8', 4));
    else if (kind !== 0) throw new Error('the database wants a way to log in that this app does not know');
  }
}

/** RFC 5802 and RFC 7677. */
function startScram(password) {
  const bare = `n=,r=${crypto.randomBytes(18).toString('base64')}`;
  let signature;
  return {
    first: `n,,${bare}`,
    next(challenge) {
      const {
        r: nonce,
        s: salt,
        i: rounds,
      } = Object.fromEntries(challenge.split(',').map((part) => [part[0], part.slice(2)]));
      if (!nonce.startsWith(bare.slice(5))) throw new Error('the answer of the database is not for us');
      const salted = crypto.pbkdf2Sync(
        password.normalize('NFKC'),
        Buffer.from(salt, 'base64'),
        Number(rounds),
        32,
        'sha256',
      );
      const clientKey = hmac(salted, 'Client Key');
      const signed = `${bare},${challenge},c=biws,r=${nonce}`;
      const stored = hmac(crypto.createHash('sha256').update(clientKey).digest(), signed);
      signature = hmac(hmac(salted, 'Server Key'), signed).toString('base64');
      return `c=biws,r=${nonce},p=${Buffer.from(clientKey.map((byte, i) => byte ^ stored[i])).toString('base64')}`;
    },
    check(answer) {
      if (answer !== `v=${signature}`) throw new Error('this is not the database it says it is');
    },
  };
}

async function query(socket, messages, text, values) {
  const parameters = values.map((value) =>
    value === null ? Buffer.from([255, 255, 255, 255]) : Buffer.concat([length(value), Buffer.from(value)]),
  );
  socket.write(
    Buffer.concat([
      message('P', `\0${text}\0`, Buffer.alloc(2)),
      message('B', '\0\0', Buffer.alloc(2), short(values.length), ...parameters, Buffer.alloc(2)),
      message('D', 'P\0'),
      message('E', '\0', Buffer.alloc(4)),
      message('S'),
    ]),
  );
  let names = [];
  const rows = [];
  let failure;
  for (;;) {
    const { type, data } = await messages.next((error) => {
      failure = error;
    });
    if (type === 'T') names = columnNames(data);
    if (type === 'D') rows.push(Object.fromEntries(fields(data).map((value, i) => [names[i], value])));
    if (type === 'Z' && failure) throw failure;
    if (type === 'Z') return rows;
  }
}

function columnNames(data) {
  const names = [];
  for (let at = 2; at < data.length;) {
    const end = data.indexOf(0, at);
    names.push(data.toString('utf8', at, end));
    at = end + 19;
  }
  return names;
}

function fields(data) {
  const values = [];
  for (let at = 2; at < data.length;) {
    const size = data.readInt32BE(at);
    values.push(size < 0 ? null : data.toString('utf8', at + 4, at + 4 + size));
    at += 4 + Math.max(size, 0);
  }
  return values;
}

/** One message after another; an error of the database is thrown, or given to `onError` where more will follow. */
function reader(socket) {
  const chunks = socket[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  return {
    async next(onError) {
      while (rest.length < 5 || rest.length < rest.readInt32BE(1) + 1) {
        const { value, done } = await chunks.next();
        if (done) throw new Error('the database closed the connection');
        rest = Buffer.concat([rest, value]);
      }
      const end = rest.readInt32BE(1) + 1;
      const found = { type: String.fromCharCode(rest[0]), data: rest.subarray(5, end) };
      rest = rest.subarray(end);
      if (found.type !== 'E') return found;
      const error = new Error(/\0M([^\0]*)/.exec(`\0${found.data}`)?.[1] || 'the database refused');
      if (!onError) throw error;
      onError(error);
      return found;
    },
  };
}

function message(type, ...parts) {
  const data = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.from([type.charCodeAt(0), 0, 0, 0, 0]);
  head.writeInt32BE(data.length + 4, 1);
  return Buffer.concat([head, data]);
}

function length(text) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Buffer.byteLength(text));
  return bytes;
}

function short(number) {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(number);
  return bytes;
}

function md5(text) {
  return crypto.createHash('md5').update(text, 'latin1').digest('hex');
}

function hmac(key, text) {
  return crypto.createHmac('sha256', key).update(text).digest();
}

module.exports = { connect };
