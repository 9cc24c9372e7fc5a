//! Both sides of a table against each other, pass by pass.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tidelake_lake::FileFault;
use tidelake_model::Result;

use super::collect::{Collector, ENTRY_BYTES, Kept, Wanted};
use super::digest::{Digest, Suspects};
use super::files;
use super::finding::{Describer, Finding, sort};
use super::lookup::Lookup;
use super::matching::{Case, Difference, Keep, Matched, Rules};
use super::report::{ColumnChecksum, TableVerification, Verified};
use super::rows::RowHasher;
use super::sides::{Scope, Side, Sides, Visitor};
use super::table::Work;
use super::{Context, repair};

/// Rows of the lake alone that are looked up at the source.
const MOST_LOOKUPS: usize = 1_000;
/// Rows that share a bucket with a difference, up to which their values are kept
/// in the pass that finds them.
const FEW: u64 = 4_096;
/// Errors whose place is remembered for a repair.
const MOST_WRONG: usize = 200_000;

/// Both sides against each other.
pub(super) struct Comparison<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) sides: &'a Sides,
    pub(super) hasher: &'a RowHasher,
}

/// What a comparison came to, beside what the report says.
pub(super) struct Done {
    pub(super) errors: u64,
    pub(super) repair: repair::Plan,
}

impl Comparison<'_> {
    /// Compares, and writes what was found into the report.
    pub(super) async fn run(
        &self,
        report: &mut TableVerification,
        faults: BTreeMap<u32, FileFault>,
    ) -> Result<Done> {
        let lake = &self.work.lake;
        let file = |number: u32| {
            usize::try_from(number).ok().and_then(|number| self.sides.files.get(number))
        };
        for (number, fault) in &faults {
            let found = file(*number).map(|file| files::finding(lake, file, fault));
            report.file_faults.extend(found);
        }
        // A file of other bytes can still be read, and says more than its checksum.
        let mut damaged: BTreeSet<u32> = faults.keys().copied().collect();
        let is_lost = |fault: &FileFault| !matches!(fault, FileFault::Checksum { .. });
        let lost = faults.iter().filter(|(_, fault)| is_lost(fault)).map(|(number, _)| *number);
        let mut scope = Scope { source: true, without: lost.collect() };
        let digest = loop {
            let rows = self.sides.files.iter().map(|file| file.rows).sum();
            let digest = Arc::new(Digest::new(self.hasher.clone(), rows));
            let visitor = Arc::clone(&digest) as Arc<dyn Visitor>;
            let scan = self.sides.scan(visitor, &scope).await?;
            if scan.unreadable.is_empty() {
                report.beyond_rows = scan.beyond;
                break digest;
            }
            for (number, error) in scan.unreadable {
                let found = file(number).map(|file| files::unreadable(lake, file, &error));
                report.file_faults.extend(found);
                damaged.insert(number);
                scope.without.insert(number);
            }
        };
        self.sum_up(&digest, report);
        let suspects = digest.suspects();
        drop(digest);
        let mut wrong = vec![];
        let mut is_cut = false;
        if !suspects.is_empty() {
            let (matched, kept) = self.collect(&suspects, &scope).await?;
            report.counts = matched.counts;
            is_cut = matched.wrong_is_cut;
            wrong.clone_from(&matched.wrong);
            let kept = match kept {
                Some(kept) => kept,
                None => self.fetch(&matched, &scope).await?,
            };
            report.findings = self.describe(matched, &kept, report).await?;
            self.check_altered(report).await?;
        }
        let errors = report.counts.errors();
        let is_same = errors == 0 && report.file_faults.is_empty();
        report.outcome = if is_same { Verified::Same } else { Verified::Differs };
        let mut plan = repair::Plan::default();
        if self.work.context.request.repair && !is_same {
            let damaged = damaged.iter().filter_map(|number| file(*number));
            plan = repair::plan(self.sides, self.hasher, wrong, is_cut, damaged, &scope).await?;
        }
        Ok(Done { errors, repair: plan })
    }

    fn sum_up(&self, digest: &Digest, report: &mut TableVerification) {
        let (source, lake) = digest.totals();
        report.source_rows = source.rows;
        report.lake_rows = lake.rows;
        let sums = self.hasher.names().iter().zip(source.sums).zip(lake.sums);
        report.columns = sums
            .map(|((name, source), lake)| ColumnChecksum {
                column: name.clone(),
                same: source == lake,
                source: format!("{source:032x}"),
                lake: format!("{lake:032x}"),
            })
            .collect();
    }

    /// The rows of buckets that differ, group by group as memory allows, put
    /// against each other. Their values come along where they are few.
    async fn collect(
        &self,
        suspects: &Suspects,
        scope: &Scope,
    ) -> Result<(Matched, Option<Vec<Kept>>)> {
        let Context { sync, request, .. } = self.work.context;
        let most = (sync.memory_limit / 2 / ENTRY_BYTES).max(100_000);
        let rules = Rules {
            has_key: !self.hasher.key().is_empty(),
            reads_all: self.hasher.cursor().is_none(),
        };
        let keep = Keep {
            errors: request.limit,
            others: request.limit,
            unknown: MOST_LOOKUPS,
            wrong: MOST_WRONG,
        };
        let is_few = suspects.rows() <= FEW;
        let mut matched = Matched::default();
        let mut values = None;
        for group in suspects.groups(most) {
            let wanted = Wanted::Buckets { bits: group.bits, marks: group.marks() };
            let names = is_few.then(|| self.hasher.names().to_vec());
            let collector = Arc::new(Collector::new(self.hasher.clone(), wanted, names));
            let visitor = Arc::clone(&collector) as Arc<dyn Visitor>;
            self.sides.scan(visitor, scope).await?;
            let (entries, kept) = collector.finish();
            matched.add(&entries, rules, keep);
            values = kept;
        }
        Ok((matched, values.filter(|_| is_few)))
    }

    /// The values of the rows that are named or looked up, from where they lie.
    async fn fetch(&self, matched: &Matched, scope: &Scope) -> Result<Vec<Kept>> {
        let whole = matched.errors.iter().chain(&matched.others);
        let cases = whole.clone().chain(&matched.unknown);
        let mut files = BTreeSet::new();
        for entry in cases.clone().filter_map(|case| case.lake) {
            if let Side::Lake(number) = entry.side {
                files.insert(number);
            }
        }
        // A row that the lake has too often lies in other files as well.
        let is_anywhere = matched.errors.iter().any(|case| case.in_lake > 1);
        let all = (0..).take(self.sides.files.len());
        let others = all.filter(|number| !is_anywhere && !files.contains(number));
        let scope = Scope {
            source: cases.clone().any(|case| case.source.is_some()),
            without: scope.without.iter().copied().chain(others).collect(),
        };
        let brief = matched.unknown.iter().map(|case| case.identity).collect();
        let wanted = Wanted::Identities { whole: whole.map(|case| case.identity).collect(), brief };
        let names = Some(self.hasher.names().to_vec());
        let collector = Arc::new(Collector::new(self.hasher.clone(), wanted, names));
        self.sides.scan(Arc::clone(&collector) as Arc<dyn Visitor>, &scope).await?;
        Ok(collector.finish().1.unwrap_or_default())
    }

    /// Names what was found; rows of the lake alone are looked up first.
    async fn describe(
        &self,
        matched: Matched,
        kept: &[Kept],
        report: &mut TableVerification,
    ) -> Result<Vec<Finding>> {
        let Context { request, sync, source, .. } = self.work.context;
        let location = |key: &str| self.work.lake.file_location(key);
        let files = &self.sides.files;
        let describer = Describer::new(self.hasher, files, &location, request.values, kept);
        let Matched { errors, mut others, mut unknown, .. } = matched;
        let mut present = HashMap::new();
        if !self.hasher.key().is_empty() && !unknown.is_empty() {
            let lookup = Lookup {
                source: source.as_ref(),
                table: &self.sides.table,
                columns: self.lookup_columns(),
                policies: sync.policies,
                hasher: self.hasher,
            };
            present = lookup.settle(&mut unknown, &describer).await?;
        }
        for case in &unknown {
            if case.class != Difference::Unknown {
                report.counts.unknown = report.counts.unknown.saturating_sub(1);
                report.counts.add(case.class, 1);
            }
        }
        others.extend(unknown);
        others.truncate(request.limit);
        let mut findings = vec![];
        for case in errors.iter().chain(&others) {
            let mut finding = describer.finding(case)?;
            if let Some(now) = moved(case, &present) {
                finding.remark = Some(now);
            }
            findings.push(finding);
        }
        sort(&mut findings);
        Ok(findings)
    }

    fn lookup_columns(&self) -> Vec<tidelake_model::Column> {
        let cursor = self.hasher.cursor().map(|cursor| cursor.cursor.columns()).unwrap_or(&[]);
        let is_wanted =
            |name: &str| self.hasher.key().iter().chain(cursor).any(|wanted| wanted == name);
        let columns = self.work.selected.read_columns.iter();
        let mut columns: Vec<_> =
            columns.filter(|column| is_wanted(column.name())).cloned().collect();
        for column in &mut columns {
            column.field.set_nullable(true);
        }
        columns
    }

    /// Whether a file that holds a wrong row was altered after it was committed.
    async fn check_altered(&self, report: &mut TableVerification) -> Result<()> {
        let wrong = report.findings.iter().filter(|finding| finding.class.is_error());
        let suspected: HashSet<_> =
            wrong.flat_map(|finding| &finding.files).map(|place| place.file.clone()).collect();
        for file in self.sides.files.iter() {
            let location = self.work.lake.file_location(&file.key);
            let is_told = report.file_faults.iter().any(|fault| fault.file == location);
            if !suspected.contains(&location) || is_told {
                continue;
            }
            let fault = self.work.lake.check_file(file, true).await?;
            report
                .file_faults
                .extend(fault.map(|fault| files::finding(&self.work.lake, file, &fault)));
        }
        Ok(())
    }
}

/// Where a row of the lake stands in the source now.
fn moved(case: &Case, present: &HashMap<u64, Option<String>>) -> Option<String> {
    if case.class != Difference::Changed {
        return None;
    }
    let now = present.get(&case.key)?.as_deref().unwrap_or("NULL");
    Some(format!("the source has this key at {now}"))
}
