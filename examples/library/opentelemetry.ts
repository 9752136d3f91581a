// Traces and metrics with OpenTelemetry, from the events that tokenwright publishes.
import { subscribe } from 'node:diagnostics_channel';
import { SpanStatusCode } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import {
  generateKey,
  MemoryTokenStore,
  type Need,
  type TokenEvent,
  TokenService,
  type Verdict,
} from 'tokenwright';

const spans = new InMemorySpanExporter(); // in production: exporters to your collector
const traces = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const tracer = traces.getTracer('tokenwright');

const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const metrics = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({ exporter: points })],
});
const counter = metrics.getMeter('tokenwright').createCounter('tokenwright.events');

// Counts by type and reason: few series, however many tokens there are. Node.js ends the process when a
// subscriber throws, so nothing may get out of one.
const changes = ['issued', 'modified', 'suspended', 'resumed', 'rotated', 'activated', 'revoked'];
const others = [
  'revoked_all',
  'purged',
  'verified',
  'revealed',
  'refused',
  'reused',
  'store_trouble',
];
for (const type of [...changes, ...others]) {
  subscribe(`tokenwright:${type}`, (message) => {
    try {
      const event = message as TokenEvent;
      counter.add(1, {
        type: event.type,
        ...(event.type === 'refused' && { reason: event.reason }),
        ...(event.type === 'store_trouble' && { code: event.code }),
      });
    } catch (error) {
      console.error('an event was not counted:', error);
    }
  });
}

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});

/** Verifies within a span that has the id of the token. */
function verify(value: string, need: Need): Promise<Verdict> {
  return tracer.startActiveSpan('token.verify', async (span) => {
    try {
      const verdict = await tokens.verify(value, need);
      if (verdict.ok) span.setAttribute('token.id', verdict.token.id);
      span.setAttribute('token.outcome', verdict.ok ? 'ok' : verdict.reason);
      return verdict;
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

const token = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
await verify(token.value, { scope: 'GET:shop.example/orders' });
await verify(token.value, { scope: 'POST:shop.example/orders' });
await verify('no token', { scope: 'GET:shop.example/orders' });
await tokens.revoke('ada', token.id);
await verify(token.value, { scope: 'GET:shop.example/orders' });
await metrics.forceFlush();

const finished = spans.getFinishedSpans();
console.log(finished.map(({ attributes }) => attributes['token.outcome']).join(' ')); // ok insufficient_scope malformed revoked
console.log(finished[0]?.attributes['token.id'] === token.id); // true

const [exported] = points.getMetrics();
const counts = exported?.scopeMetrics[0]?.metrics[0]?.dataPoints.map(
  ({ attributes, value }) => `${Object.values(attributes).join('/')} ${value}`,
);
console.log(counts?.join(', ')); // issued 1, verified 1, refused/insufficient_scope 1, refused/malformed 1, revoked 1, refused/revoked 1
const attributes = JSON.stringify([
  finished.map((span) => span.attributes),
  exported?.scopeMetrics,
]);
console.log(attributes.includes(token.value)); // false
await Promise.all([traces.shutdown(), metrics.shutdown()]);
