// Connections to a port of a network that a gate holds, for programs that stand on their own, in text: `connectInside`,
// as connect.ts has it for the service. Where the gate hands the connected socket over, it has no part in its bytes.
// Layouts are those of descriptors.ts.

/** To be put into a program that has `net` and `koffi`: the file of that package; '' = the gate passes the bytes on. */
export const connectInsideProgram = `
let handed;
// done(socket), of which nothing has been read; done(null) where the port takes no connection.
function connectInside(gate, port, done) {
  // Not before a gate is asked: a program that needs none may not see the file.
  if (handed === undefined) handed = openHanded(koffi);
  const connection = handed ? handed.connect(gate.replace(/gate$/, 'hand')) : null;
  if (connection === 'busy') return void setTimeout(connectInside, 1, gate, port, done);
  if (connection === null) return relay(gate, port, done);
  const onread = { buffer: Buffer.alloc(1), callback: (_, [answer]) => (answer === 43 ? take() : finish(null), false) };
  const socket = new net.Socket({ fd: connection, onread });
  let isOver = false;
  const late = setTimeout(() => finish(null), 10000);
  socket.on('error', () => finish(null));
  socket.on('end', () => finish(null));
  socket.write(port + '\\n');
  function take() {
    if (isOver) return;
    const received = handed.receive(connection);
    if (received === null) return void setTimeout(take, 1);
    if (received === 'none') return finish(null, () => relay(gate, port, done));
    try {
      finish(new net.Socket({ fd: received, allowHalfOpen: true }).setNoDelay(true).setKeepAlive(true));
    } catch {
      require('node:fs').closeSync(received);
      finish(null);
    }
  }
  function finish(found, next = () => done(found)) {
    if (isOver) return;
    isOver = true;
    clearTimeout(late);
    socket.destroy();
    next();
  }
}
// See gate.ts.
function relay(gate, port, done) {
  const socket = net.connect({ path: gate, allowHalfOpen: true });
  const fail = () => (socket.destroy(), done(null));
  socket.on('error', () => socket.destroy());
  socket.once('close', fail);
  socket.write(port + '\\n');
  socket.on('readable', function answered() {
    const answer = socket.read(1);
    if (answer === null) return;
    socket.off('readable', answered).off('close', fail);
    if (answer[0] === 43) done(socket);
    else fail();
  });
}
function openHanded(file) {
  if (!file) return null;
  try {
    const ffi = require(file), libc = ffi.load(null);
    const open = libc.func('int socket(int, int, int)'), close = libc.func('int close(int)');
    const connect = libc.func('int connect(int, void*, unsigned int)');
    const recvmsg = libc.func('int64_t recvmsg(int, void*, int)');
    const memory = ffi.alloc('uint8_t', 104), base = ffi.address(memory);
    const view = new DataView(ffi.view(memory, 104)), put = (at, value) => view.setBigUint64(at, BigInt(value), true);
    const EAGAIN = 11;
    return {
      connect(file) {
        const address = Buffer.concat([Buffer.from([1, 0]), Buffer.from(file), Buffer.from([0])]);
        const fd = open(1, 1 | 0o4000 | 0o2000000, 0);
        if (fd < 0) return null;
        if (connect(fd, address, address.length) === 0) return fd;
        const isBusy = ffi.errno() === EAGAIN;
        close(fd);
        return isBusy ? 'busy' : null;
      },
      receive(fd) {
        for (let at = 0; at < 104; at += 8) put(at, 0);
        put(16, base + 56n), put(24, 1), put(32, base + 72n), put(40, 20);
        put(56, base + 96n), put(64, 1);
        if (recvmsg(fd, base, 0x40 | 0x40000000) < 0) return ffi.errno() === EAGAIN ? null : 'none';
        const isDescriptor = view.getInt32(80, true) === 1 && view.getInt32(84, true) === 1;
        return view.getBigUint64(40, true) >= 20n && isDescriptor ? view.getInt32(88, true) : 'none';
      },
    };
  } catch (error) {
    return console.error(error.message), null;
  }
}
`;
