import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';

/** Writes a key and a certificate that signs itself to `PATH.key` and `PATH.pem`. */
export function makeCertificate(path: string, host: string) {
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`],
    ...['-keyout', `${path}.key`, '-out', `${path}.pem`],
  ]);
  return { key: readFileSync(`${path}.key`, 'utf8'), cert: readFileSync(`${path}.pem`, 'utf8') };
}

/** The port of a server that answers as PostgreSQL does, with a certificate at `PATH.pem` that nobody trusts. */
export async function tlsPort(path: string): Promise<number> {
  const certificate = makeCertificate(path, 'canary.example');
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => {});
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
