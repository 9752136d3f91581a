/** One promise of a store, for any test runner. */
interface ContractCase<Store> {
  readonly name: string;
  run(open: () => Store | Promise<Store>): Promise<void>;
}

/** Makes a case that opens a store, checks a promise of it and closes the store. */
export function contractCase<Store extends { close?(): Promise<void> }>(
  name: string,
  check: (store: Store) => Promise<void>,
): ContractCase<Store> {
  return {
    name,
    async run(open) {
      const store = await open();
      try {
        await check(store);
      } finally {
        await store.close?.();
      }
    },
  };
}
