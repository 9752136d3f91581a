// Attacks by one account from one address: node test/faults/hostile-client.ts KIND PORT SECONDS
import { Agent, request } from 'node:http';
import { connect } from 'node:net';

const [kind = '', port = '', seconds = ''] = process.argv.slice(2);
const ADDRESS = '127.0.0.2';
const end = performance.now() + Number(seconds) * 1000;
const agent = new Agent({ keepAlive: true });
const credentials = (password = 'hostile-password') =>
  `Basic ${Buffer.from(`hostile:${password}`).toString('base64')}`;
const counts = new Map<string, number>();
const count = (what: number | string) =>
  counts.set(String(what), (counts.get(String(what)) ?? 0) + 1);

interface Options {
  readonly body?: unknown;
  readonly password?: string | undefined;
}

function call(method: string, path: string, options: Options = {}): Promise<string> {
  const { body, password } = options;
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve) => {
    const outgoing = request({
      agent,
      port: Number(port),
      localAddress: ADDRESS,
      method,
      path,
      headers: {
        authorization: credentials(password),
        ...(text !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
      },
    });
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk) => chunks.push(chunk));
      incoming.on('end', () => {
        count(incoming.statusCode ?? 0);
        resolve(Buffer.concat(chunks).toString());
      });
      incoming.on('error', () => resolve(''));
    });
    outgoing.on('error', () => {
      count('broken');
      setTimeout(resolve, 10, '');
    });
    outgoing.end(text);
  });
}

/** Repeats the work in concurrent lanes until the time is over. */
async function each(lanes: number, work: (lane: number) => Promise<unknown>): Promise<void> {
  const lane = async (number: number) => {
    while (performance.now() < end) await work(number);
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
}

/** Opens connections that send a part of a request and then stop. */
function hang(connections: number, head: string, onOpen: (write: (text: string) => void) => void) {
  return each(
    connections,
    () =>
      new Promise<void>((resolve) => {
        const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: ADDRESS });
        const timer = setTimeout(() => socket.destroy(), Math.max(0, end - performance.now()));
        socket.on('error', () => {});
        socket.on('close', () => {
          count('closed');
          clearTimeout(timer);
          setTimeout(resolve, 20);
        });
        // Does not read answers, so that they stay in the buffers of the service.
        socket.pause();
        socket.write(head);
        onOpen((text) => socket.write(text));
      }),
  );
}

const all = Array.from({ length: 999 }, (_, i) => `GET:api${i % 4}.example.com/r${i}/items/${i}`);

async function token(): Promise<string> {
  const answer = await call('POST', '/token', { body: { scopes: ['*:*/*'] } });
  try {
    return JSON.parse(answer).id ?? '';
  } catch {
    return '';
  }
}

/** As many concurrent calls as an attack, but small ones. */
const ordinary = () => each(32, () => call('GET', '/token?limit=1'));

const ATTACKS: Readonly<Record<string, () => Promise<unknown>>> = {
  creates: () => each(32, () => call('POST', '/token', { body: { scopes: ['*:*/*'] } })),
  lists: () => each(32, () => call('GET', '/token')),
  filters: () => each(32, () => call('GET', '/token?scope=GET:api1.example.com/zzz')),
  patches: async () => {
    const ids = [await token(), await token(), await token(), await token()];
    await each(32, async (lane) => {
      const path = `/token/${ids[lane % ids.length]}`;
      await call('PATCH', path, { body: { removeScopes: all } });
      await call('PATCH', path, { body: { addScopes: all.map((scope) => `*${scope.slice(3)}`) } });
      await call('PATCH', path, { body: { addScopes: all.map((scope) => `${scope}z`) } });
    });
  },
  bodies: () => {
    const head = `POST /token HTTP/1.1\r\nHost: x\r\nAuthorization: ${credentials()}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n`;
    return hang(1000, head, (write) => write('{"scop'));
  },
  forms: () => {
    const head =
      'POST /revoke HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n';
    return hang(1000, head, (write) => write('token='));
  },
  readers: () => {
    const head = `GET /token HTTP/1.1\r\nHost: x\r\nAuthorization: ${credentials()}\r\n\r\n`;
    return hang(200, head.repeat(20), () => {});
  },
  passwords: () => each(300, () => call('GET', '/token', { password: `wrong ${Math.random()}` })),
};

const chosen = kind === 'all' ? Object.values(ATTACKS) : [ATTACKS[kind] ?? ordinary];
await Promise.all(chosen.map((attack) => attack()));
process.send?.(Object.fromEntries(counts));
process.exit();
