/**
 * Names of variables that Kubernetes and Docker set in each container for every service that it may
 * call, by the name of the service: `tokenwright-metrics` makes `TOKENWRIGHT_METRICS_PORT`.
 */
const LINK_NAME = /_(?:SERVICE_HOST|SERVICE_PORT|PORT_\d+_(?:TCP|UDP|SCTP)|ENV)(?:_|$)/;
const LINK_PORT = /^(?:tcp|udp|sctp):\/\/\S+:\d{1,5}$/;

/** Whether a variable describes a service that happens to be named like ours, and is not a setting. */
export function isServiceLink(name: string, value: string): boolean {
  if (LINK_NAME.test(name)) return true;
  // Docker gives the path of a link, such as /web/tokenwright.
  if (name.endsWith('_NAME')) return value.startsWith('/');
  return name.endsWith('_PORT') && LINK_PORT.test(value);
}
