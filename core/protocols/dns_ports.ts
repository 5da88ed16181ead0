const USUAL_PORTS = [53, 5300];

/** Ports that the embedded name server tries in order, for this DNS_PORT. */
export function dnsPortsOf(dnsPort: number | null): number[] {
  return dnsPort === null ? USUAL_PORTS : [dnsPort];
}
