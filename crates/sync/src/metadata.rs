use crate::run::TableReport;
use crate::table_run::RunContext;
use tidelake_model::Result;
pub(crate) async fn write(_: &RunContext, _: &[TableReport]) -> Result<()> {
    Ok(())
}
