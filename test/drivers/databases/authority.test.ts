// The installation's own authority: its certificates are what a client that trusts it takes, and nothing else.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { isOutdated, issueServerCertificate, newAuthority } from '../../../drivers/certificates/authority';

async function handshake(
  server: { certificate: string; key: string },
  ca: string,
  name: { host?: string; servername?: string },
): Promise<string> {
  const listener = tls.createServer(
    { cert: server.certificate, key: server.key },
    (socket) => void socket.on('error', () => {}).end(),
  );
  listener.on('tlsClientError', () => {});
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  try {
    const client = tls.connect({ host: '127.0.0.1', port, ca, ...name });
    const said = await once(client, 'secureConnect').then(
      () => 'trusted',
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    client.destroy();
    return said;
  } finally {
    listener.close();
  }
}

test('clients that trust the authority accept its certificate for its names and addresses only', async () => {
  const authority = await newAuthority('Test authority');
  const server = await issueServerCertificate(authority, ['db.example.com', '127.0.0.1']);
  expect(await handshake(server, authority.certificate, {})).toBe('trusted');
  expect(await handshake(server, authority.certificate, { servername: 'db.example.com' })).toBe('trusted');
  expect(await handshake(server, authority.certificate, { servername: 'other.example.com' })).toBe(
    'ERR_TLS_CERT_ALTNAME_INVALID',
  );
  const other = await newAuthority('Other authority');
  expect(await handshake(server, other.certificate, {})).not.toBe('trusted');
});

test('it is replaced near its end, for a new name and under another authority', async () => {
  const authority = await newAuthority('Test authority');
  const { certificate } = await issueServerCertificate(authority, ['db.example.com', '127.0.0.1']);
  const names = ['db.example.com', '127.0.0.1'];
  expect(isOutdated(certificate, authority.certificate, names)).toBe(false);
  expect(isOutdated(certificate, authority.certificate, names, Date.now() + 300 * 86_400_000)).toBe(true);
  expect(isOutdated(certificate, authority.certificate, [...names, '127.0.0.2'])).toBe(true);
  expect(isOutdated(certificate, (await newAuthority('Test authority')).certificate, names)).toBe(true);
});
