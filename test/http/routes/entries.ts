/** Scopes of one catalog, as long as those of an ordinary API. */
export function entries(count: number): string[] {
  return Array.from(
    { length: count },
    (_, i) => `GET:api${i % 4}.example.com/r${i}/items/of/some/length/${i}`,
  );
}
