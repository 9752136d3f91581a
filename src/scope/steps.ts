/**
 * Work on a long list that can pause after each step of some microseconds. {@link atOnce} does it without a
 * pause; the service divides it into turns of the event loop.
 */
export type Steps<Result> = Generator<void, Result>;

/** Does all steps now. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** The members of a list, with a pause after every 64. */
export function* inSteps<Member>(
  members: Iterable<Member>,
  take: (member: Member, index: number) => void,
): Steps<void> {
  let index = 0;
  for (const member of members) {
    take(member, index);
    if (endsStep(index)) yield;
    index += 1;
  }
}

/** Whether a pause is due after the member at an index. */
export function endsStep(index: number): boolean {
  return index % MEMBERS_A_STEP === MEMBERS_A_STEP - 1;
}

/** The members that pass a test, in steps. */
export function* filterInSteps<Member>(
  members: Iterable<Member>,
  test: (member: Member, index: number) => boolean,
): Steps<Member[]> {
  const passed: Member[] = [];
  yield* inSteps(members, (member, index) => {
    if (test(member, index)) passed.push(member);
  });
  return passed;
}

const MEMBERS_A_STEP = 64;
