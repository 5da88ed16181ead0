// @ts-check
// Connections to a port of a network that a gate holds (gate.js), for programs that run outside of the service. It is
// copied beside them.
'use strict';

const net = require('node:net');

const TAKEN = '+'.charCodeAt(0);

/**
 * @param {string} gate the socket of the gate
 * @param {number} port
 * @param {(socket: net.Socket | null) => void} done null where the port takes no connection. Of the socket nothing has
 *   been read.
 */
function connectInside(gate, port, done) {
  const socket = net.connect({ path: gate, allowHalfOpen: true });
  const fail = () => {
    socket.destroy();
    done(null);
  };
  socket.on('error', () => socket.destroy());
  socket.once('close', fail);
  socket.write(`${port}\n`);
  socket.on('readable', function answered() {
    const answer = socket.read(1);
    if (answer === null) return;
    socket.off('readable', answered).off('close', fail);
    if (answer[0] === TAKEN) done(socket);
    else fail();
  });
}

module.exports = { connectInside };
