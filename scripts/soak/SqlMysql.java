// What scripts/soak/sql-mysql.sh has Connector/J ask. usage: SqlMysql.java URL USER PASSWORD

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;

public class SqlMysql {
    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
            lists(connection.getMetaData());
            long changes = number(connection, "SELECT COUNT(*) FROM changes");
            expect("a stream", changes, rows(connection.createStatement().executeQuery("SELECT * FROM changes")));
            try (Statement limited = connection.createStatement()) {
                limited.setMaxRows(5);
                expect("setMaxRows", 5, rows(limited.executeQuery("SELECT gtid FROM changes")));
                limited.setMaxRows(0);
            }
            long updates = number(connection, "SELECT COUNT(*) FROM changes WHERE operation = 'update'");
            String text = "SELECT COUNT(*), MAX(committed_at) FROM changes WHERE operation = ? AND committed_at < ? AND position > ?";
            try (PreparedStatement statement = connection.prepareStatement(text)) {
                statement.setString(1, "update");
                statement.setTimestamp(2, Timestamp.valueOf("2100-01-01 00:00:00"));
                statement.setLong(3, 0);
                ResultSet row = statement.executeQuery();
                row.next();
                expect("parameters", updates, row.getLong(1));
                expect("a time", 1, row.getTimestamp(2) == null ? 0 : 1);
            }
            refused(connection, "DELETE FROM salaries", 1290);
            refused(connection, "SELECT nothing FROM salaries", 1054);
            refused(connection, "SELECT 1 FROM nothing", 1146);
            expect("isValid", 1, connection.isValid(10) ? 1 : 0);
        }
        System.out.println("equal: " + arguments[0]);
    }

    static void lists(DatabaseMetaData data) throws SQLException {
        expect("tables", 4, rows(data.getTables("employees", null, "%", new String[] {"TABLE"})));
        ResultSet columns = data.getColumns("employees", null, "salaries", "%");
        boolean has = false;
        while (columns.next()) {
            has |= columns.getString("COLUMN_NAME").equals("after") && columns.getString("TYPE_NAME").equals("JSON");
        }
        expect("columns", 1, has ? 1 : 0);
        expect("keys", 0, rows(data.getPrimaryKeys("employees", null, "salaries")));
        expect("indexes", 0, rows(data.getIndexInfo("employees", null, "salaries", false, false)));
        expect("foreign keys", 0, rows(data.getImportedKeys("employees", null, "salaries")));
        expect("procedures", 0, rows(data.getProcedures("employees", null, "%")));
    }

    static long rows(ResultSet result) throws SQLException {
        long count = 0;
        while (result.next()) {
            count++;
        }
        return count;
    }

    static long number(Connection connection, String statement) throws SQLException {
        ResultSet result = connection.createStatement().executeQuery(statement);
        result.next();
        return result.getLong(1);
    }

    static void refused(Connection connection, String statement, int expected) {
        try {
            connection.createStatement().execute(statement);
            throw new AssertionError(statement + ": not refused");
        } catch (SQLException error) {
            expect(statement, expected, error.getErrorCode());
        }
    }

    static void expect(String what, long expected, long found) {
        if (expected != found) {
            throw new AssertionError(what + ": " + found + ", expected " + expected);
        }
    }
}
